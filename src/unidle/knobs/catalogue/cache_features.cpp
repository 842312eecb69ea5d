#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& cache_features() {
  static const Knob kKnob{
      .name = "cache.features",
      .type = ValueType::kChoice,
      .knob_class = KnobClass::kExact,
      .choices = {"off", "memory"},
      .fallback = "off",
      .explanation =
          "Keeps the result of expensive per-sample work (decoding, feature prediction) for the next "
          "epochs.",
      .change =
          {
              .at_run_time = true,
              .code = "keep what __getitem__ computes, by index, e.g. computed once before the first epoch",
              .code_place = "dataset",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
