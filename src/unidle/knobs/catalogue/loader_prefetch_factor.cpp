#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_prefetch_factor() {
  static const Knob kKnob{
      "loader.prefetch_factor",
      ValueType::kInt,
      KnobClass::kExact,
      {},
      "2",
      "How many batches each loader worker prepares ahead; a deeper queue hides samples that take "
      "unusually long, and costs memory.",
      {
          .spellings =
              {
                  {"prefetch factor ?data ?loader ?train ?num ?batch"},
                  {"prefetch ?num ?batches", Meaning::kValue, true},
              },
          .topic = "prefetch",
          .never_under = "zero offload",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
