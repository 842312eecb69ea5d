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
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
