#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& validation_interval() {
  static const Knob kKnob{
      "validation.interval",
      ValueType::kInt,
      KnobClass::kExact,
      {},
      "1",
      "Epochs between two validations; does not touch training, but you look less often.",
      {
          .spellings =
              {
                  {"val|eval|validation|evaluation epoch every|interval|freq|frequency ?check ?n ?in"},
              },
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
