#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& cudnn_benchmark() {
  static const Knob kKnob{
      "cudnn.benchmark",
      ValueType::kBool,
      KnobClass::kNumeric,
      {},
      "false",
      "Lets cuDNN time its convolution algorithms and keep the fastest; pays when input shapes stay "
      "the same.",
      {
          .spellings =
              {
                  {"cudnn benchmark ?use ?enable ?backend ?torch"},
                  {"trainer benchmark"},
              },
          .topic = "benchmark",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
