#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& optimizer_lr() {
  static const Knob kKnob{
      "optimizer.lr", ValueType::kDouble, KnobClass::kSemantic, {}, "0.001", "The learning rate.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
