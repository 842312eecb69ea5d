#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& model_width() {
  static const Knob kKnob{
      .name = "model.width",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kSemantic,
      .fallback = std::nullopt,
      .explanation = "Channels or hidden units of the model.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
