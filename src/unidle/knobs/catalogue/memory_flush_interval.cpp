#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& memory_flush_interval() {
  static const Knob kKnob{
      .name = "memory.flush_interval",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kExact,
      .fallback = 0,
      .explanation =
          "How many optimiser steps lie between two flushes of the allocator's cache; 0 for none. What is flushed is "
          "asked for again in the next step.",
      .names =
          {
              .spellings =
                  {
                      {"empty|clear|flush cache interval|freq|frequency|step|every ?n"},
                  },
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
