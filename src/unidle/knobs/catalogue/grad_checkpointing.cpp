#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& grad_checkpointing() {
  static const Knob kKnob{
      .name = "grad.checkpointing",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kExact,
      .fallback = false,
      .explanation =
          "Computes activations again in the backward pass instead of keeping them: less memory for about "
          "a third more computation.",
      .names =
          {
              .spellings =
                  {
                      {"gradient|grad|activation checkpointing|checkpoint ?use ?enable ?enabled ?fsdp"},
                  },
              .topic = "checkpointing checkpoint",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
