#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& model_depth() {
  static const Knob kKnob{
      "model.depth", ValueType::kInt, KnobClass::kSemantic, {}, "", "Blocks or layers of the model.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
