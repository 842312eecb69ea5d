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
      {
          .spellings =
              {
                  {"channel last ?use ?enable ?memory ?format"},
                  {"nhwc ?use ?enable"},
                  {"memory format ?torch ?model", Meaning::kMemoryFormat},
              },
          .topic = "channel nhwc format",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
