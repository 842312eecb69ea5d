#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& cache_features() {
  static const Knob kKnob{
      "cache.features",
      ValueType::kChoice,
      KnobClass::kExact,
      {"off", "memory"},
      "off",
      "Keeps the result of expensive per-sample work (decoding, feature prediction) for the next "
      "epochs.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
