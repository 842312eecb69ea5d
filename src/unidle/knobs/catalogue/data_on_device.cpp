#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& data_on_device() {
  static const Knob kKnob{
      .name = "data.on_device",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kExact,
      .fallback = false,
      .explanation = "Holds the whole data set in device memory, when it fits, so that no batch is copied again.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
