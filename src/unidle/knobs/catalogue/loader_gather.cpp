#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_gather() {
  static const Knob kKnob{
      "loader.gather",
      ValueType::kBool,
      KnobClass::kExact,
      {},
      "false",
      "Takes the rows of a batch from data in memory by one indexing operation instead of one call a row.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
