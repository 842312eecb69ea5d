#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& batch_accumulation() {
  static const Knob kKnob{
      .name = "batch.accumulation",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kNumeric,
      .fallback = 1,
      .explanation =
          "How many batches are summed into one optimiser step; fewer and larger ones keep a device busier "
          "as long as they fit its memory.",
      .names =
          {
              .spellings =
                  {
                      {"accumulation|accum|accumulate|accumulative ?gradient ?gradients ?grad ?step ?iter ?batches "
                       "?count "
                       "?num ?size "
                       "?freq ?every ?factor ?train"},
                      {"acc gradient|gradients|grad|grads ?step ?steps ?num"},
                      {"update freq|frequency", Meaning::kValue, true},
                  },
              .topic = "accumulation accum accumulate accumulative acc",
              .never_under = "metric metrics",
              .environment = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
          },
      .change =
          {
              .code = "count to {0} before a step, and divide the loss by it",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
