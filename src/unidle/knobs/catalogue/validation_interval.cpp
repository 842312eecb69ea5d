#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& validation_interval() {
  static const Knob kKnob{
      "validation.interval",
      ValueType::kInt,
      KnobClass::kExact,
      {},
      "1",
      "Epochs between two validations; does not touch training, but you look less often.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
