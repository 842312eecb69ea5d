#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& cudnn_benchmark() {
  static const Knob kKnob{
      .name = "cudnn.benchmark",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kNumeric,
      .fallback = false,
      .explanation =
          "Lets cuDNN time its convolution algorithms and keep the fastest; pays when input shapes stay "
          "the same.",
      .names =
          {
              .spellings =
                  {
                      {"cudnn benchmark ?use ?enable ?backend ?torch"},
                      {"trainer benchmark"},
                  },
              .topic = "benchmark",
          },
      .change =
          {
              .at_run_time = true,
              .code = "torch.backends.cudnn.benchmark = {0}, before the first step",
          },
      .gpu_only = true,
      .compared = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
