#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& validation_interval() {
  static const Knob kKnob{
      .name = "validation.interval",
      .type = ValueType::kDouble,
      .knob_class = KnobClass::kExact,
      .fallback = 1.0,
      .explanation = "Epochs between two validations; does not touch training, but you look less often.",
      .names =
          {
              .spellings =
                  {
                      {"val|eval|validation|evaluation epoch every|interval|freq|frequency ?check ?n ?in"},
                      {"validate interval", Meaning::kValue, false, "fairseq"},
                  },
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
