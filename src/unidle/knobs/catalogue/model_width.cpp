#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& model_width() {
  static const Knob kKnob{
      "model.width", ValueType::kInt, KnobClass::kSemantic, {}, "", "Channels or hidden units of the model.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
