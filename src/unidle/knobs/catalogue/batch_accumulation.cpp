#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& batch_accumulation() {
  static const Knob kKnob{
      "batch.accumulation",
      ValueType::kInt,
      KnobClass::kNumeric,
      {},
      "1",
      "How many batches are summed into one optimiser step; fewer and larger ones keep a device busier "
      "as long as they fit its memory.",
      {
          .spellings =
              {
                  {"accumulation|accum|accumulate|accumulative ?gradient ?gradients ?grad ?step ?iter ?batches ?count "
                   "?num ?size "
                   "?freq ?train"},
                  {"update freq|frequency", Meaning::kValue, true},
              },
          .topic = "accumulation accum accumulate accumulative",
          .never_under = "metric metrics",
          .environment = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
