#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& optimizer_fused() {
  static const Knob kKnob{
      .name = "optimizer.fused",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kNumeric,
      .fallback = false,
      .explanation =
          "Updates all parameters in one pass over memory instead of a handful of small operations for "
          "each tensor.",
      .names =
          {
              .spellings =
                  {
                      {"fused optimizer|optim|adam|adamw|sgd ?use ?torch ?enable"},
                      {"use fused"},
                      {"optimizer|optim implementation", Meaning::kOptimizerName},
                      {"optimizer|optim ?name ?type", Meaning::kOptimizerName},
                  },
              .topic = "fused",
          },
      .change =
          {
              .at_run_time = true,
              .code = "fused={0} where the optimiser is made, e.g. torch.optim.AdamW(..., fused={0})",
              .code_place = "optimizer",
              .argument = "fused",
          },
      .compared = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
