#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_workers() {
  static const Knob kKnob{
      "loader.workers",
      ValueType::kInt,
      KnobClass::kExact,
      {},
      "0",
      "How many threads or processes prepare samples beside the training step; 0 means that the step "
      "waits for every sample.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
