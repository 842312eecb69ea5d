#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& data_on_device() {
  static const Knob kKnob{
      "data.on_device",  ValueType::kBool,
      KnobClass::kExact, {},
      "false",           "Holds the whole data set in device memory, when it fits, so that no batch is copied again.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
