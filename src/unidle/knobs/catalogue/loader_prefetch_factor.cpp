#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_prefetch_factor() {
  static const Knob kKnob{
      .name = "loader.prefetch_factor",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kExact,
      .fallback = 2,
      .explanation =
          "How many batches each loader worker prepares ahead; a deeper queue hides samples that take "
          "unusually long, and costs memory.",
      .names =
          {
              .spellings =
                  {
                      {"prefetch factor ?data ?loader ?train ?num ?batch"},
                      {"prefetch ?num ?batches", Meaning::kValue, true},
                  },
              .topic = "prefetch",
              .never_under = "zero offload",
          },
      .change =
          {
              .at_run_time = true,
              .code = "DataLoader(..., prefetch_factor={0})",
              .code_place = "loader",
              .argument = "prefetch_factor",
              .package_code = "unidle.data.Loader(..., prefetch={0})",
              .package_argument = "prefetch",
          },
      .compared = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
