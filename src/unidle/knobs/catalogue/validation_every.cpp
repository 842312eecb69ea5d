#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& validation_every() {
  static const Knob kKnob{
      "validation.every",
      ValueType::kInt,
      KnobClass::kExact,
      {},
      "1",
      "Of so many validations that a program would make, one is made; 0: none. Does not touch training.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
