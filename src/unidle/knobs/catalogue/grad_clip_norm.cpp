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
      {
          .spellings =
              {
                  {"gradient|grad|gradients clip|clipping ?norm ?val ?value ?max ?threshold"},
                  {"max gradient|grad norm"},
                  {"max norm", Meaning::kValue, true},
              },
          .topic = "clip norm",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
