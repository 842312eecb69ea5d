#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& input_size() {
  static const Knob kKnob{
      .name = "input.size",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kSemantic,
      .fallback = std::nullopt,
      .explanation = "Edge length of pictures, or length of sequences, that the model is trained on.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
