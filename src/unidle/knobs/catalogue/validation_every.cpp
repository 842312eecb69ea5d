#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& validation_every() {
  static const Knob kKnob{
      .name = "validation.every",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kExact,
      .fallback = 1,
      .explanation = "Of so many validations that a program would make, one is made; 0: none. Does not touch training.",
      .change =
          {
              .at_run_time = true,
              .code = "make one in {0} of its calls",
              .code_place = "validation",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
