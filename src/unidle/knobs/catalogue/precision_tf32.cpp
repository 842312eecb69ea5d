#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& precision_tf32() {
  static const Knob kKnob{
      .name = "precision.tf32",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kNumeric,
      .fallback = false,
      .explanation =
          "Lets fp32 matrix products round their inputs to 10 mantissa bits, on NVIDIA GPUs from Ampere "
          "on.",
      .names =
          {
              .spellings =
                  {
                      {"tf32 ?allow ?use ?enable ?matmul ?cudnn ?cublas ?cuda ?backend ?torch"},
                      {"matmul precision ?float32 ?fp32 ?torch ?set", Meaning::kMatmulPrecision},
                  },
              .topic = "tf32 matmul",
          },
      .change =
          {
              .at_run_time = true,
              .code = "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = {0}, before the model "
                      "is made",
          },
      .gpu_only = true,
      .compared = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
