#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& grad_clip_norm() {
  static const Knob kKnob{
      "grad.clip_norm",
      ValueType::kDouble,
      KnobClass::kSemantic,
      {},
      "0",
      "Scales gradients down when their norm over all parameters is above this; 0 leaves them alone.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
