#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& cache_features() {
  static const Knob kKnob{
      .name = "cache.features",
      .type = ValueType::kChoice,
      .knob_class = KnobClass::kExact,
      .choices = {"off", "memory", "disk"},
      .when_true = "memory",
      .fallback = "off",
      .explanation =
          "Keeps the result of expensive per-sample work (decoding, feature prediction) for the next "
          "epochs, in memory or on disk, for later runs as well.",
      .change =
          {
              .at_run_time = true,
              .code = "keep what __getitem__ computes, by index, e.g. computed once before the first epoch; "
                      "unidle.cached keeps it for later runs too",
              .code_place = "dataset",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
