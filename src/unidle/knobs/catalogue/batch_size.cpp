#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& batch_size() {
  static const Knob kKnob{
      "batch.size",
      ValueType::kInt,
      KnobClass::kNumeric,
      {},
      "1",
      "Samples in one forward and backward pass; with batch.accumulation it makes the effective batch, "
      "which stays what it was unless a semantic change is allowed.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
