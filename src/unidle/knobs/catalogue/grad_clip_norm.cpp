#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& grad_clip_norm() {
  static const Knob kKnob{
      .name = "grad.clip_norm",
      .type = ValueType::kDouble,
      .knob_class = KnobClass::kSemantic,
      .fallback = 0.0,
      .explanation = "Scales gradients down when their norm over all parameters is above this; 0 leaves them alone.",
      .names =
          {
              .spellings =
                  {
                      {"gradient|grad|gradients clip|clipping ?norm ?val ?value ?max ?threshold"},
                      {"max gradient|grad norm"},
                      {"clip norm ?max ?global"},
                      {"max norm", Meaning::kValue, true},
                  },
              .topic = "clip norm",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
