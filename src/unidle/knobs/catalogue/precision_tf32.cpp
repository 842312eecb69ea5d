#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& precision_tf32() {
  static const Knob kKnob{
      "precision.tf32",
      ValueType::kBool,
      KnobClass::kNumeric,
      {},
      "false",
      "Lets fp32 matrix products round their inputs to 10 mantissa bits, on NVIDIA GPUs from Ampere "
      "on.",
      {
          .spellings =
              {
                  {"tf32 ?allow ?use ?enable ?matmul ?cudnn ?cublas ?cuda ?backend ?torch"},
                  {"matmul precision ?float32 ?fp32 ?torch ?set", Meaning::kMatmulPrecision},
              },
          .topic = "tf32 matmul",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
