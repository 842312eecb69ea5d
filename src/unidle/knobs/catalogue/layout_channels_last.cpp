#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& layout_channels_last() {
  static const Knob kKnob{
      "layout.channels_last",
      ValueType::kBool,
      KnobClass::kNumeric,
      {},
      "false",
      "Stores pictures and convolution weights with the channels innermost, the order that "
      "low-precision GPU kernels and CPU kernels work in.",
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
