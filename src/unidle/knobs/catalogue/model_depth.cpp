#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& model_depth() {
  static const Knob kKnob{
      .name = "model.depth",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kSemantic,
      .fallback = std::nullopt,
      .explanation = "Blocks or layers of the model.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
