#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& precision_amp() {
  static const Knob kKnob{
      "precision.amp",
      ValueType::kChoice,
      KnobClass::kNumeric,
      {"off", "fp16", "bf16"},
      "off",
      "Runs matrix products and convolutions in a 16-bit format; worth it only where the hardware has "
      "units for it. fp16 needs loss scaling, bf16 does not.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
