#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& optimizer_warmup_steps() {
  static const Knob kKnob{
      .name = "optimizer.warmup_steps",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kSemantic,
      .fallback = 0,
      .explanation = "Optimiser steps over which the learning rate rises from near zero.",
      .names =
          {
              .spellings =
                  {
                      {"warmup step|iter|update ?lr ?num ?scheduler"},
                      {"t warmup"},
                  },
              .topic = "warmup",
              .never_under = "hook hooks timer latency benchmark profiler",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
