#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& optimizer_warmup_steps() {
  static const Knob kKnob{
      "optimizer.warmup_steps",
      ValueType::kInt,
      KnobClass::kSemantic,
      {},
      "0",
      "Optimiser steps over which the learning rate rises from near zero.",
      {
          .spellings =
              {
                  {"warmup step|iter ?lr ?num ?scheduler"},
              },
          .topic = "warmup",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
