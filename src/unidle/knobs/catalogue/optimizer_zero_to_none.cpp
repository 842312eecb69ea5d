#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& optimizer_zero_to_none() {
  static const Knob kKnob{
      .name = "optimizer.zero_to_none",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kExact,
      .fallback = true,
      .explanation =
          "Drops gradients between steps instead of filling them with zeros, which saves a pass over "
          "memory.",
      .names =
          {
              .spellings =
                  {
                      {"set to none ?zero ?grad ?optimizer"},
                  },
              .topic = "none",
          },
      .change =
          {
              .at_run_time = true,
              .code = "optimizer.zero_grad(set_to_none={0})",
              .code_place = "zero_grad",
              .argument = "set_to_none",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
