#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& optimizer_fused() {
  static const Knob kKnob{
      "optimizer.fused",
      ValueType::kBool,
      KnobClass::kNumeric,
      {},
      "false",
      "Updates all parameters in one pass over memory instead of a handful of small operations for "
      "each tensor.",
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
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
