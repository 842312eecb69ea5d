#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& precision_amp() {
  static const Knob kKnob{
      "precision.amp",
      ValueType::kChoice,
      KnobClass::kNumeric,
      {"off", "fp16", "bf16"},
      "off",
      "Runs matrix products and convolutions in a 16-bit format; worth it only where the hardware has "
      "units for it. fp16 needs loss scaling, bf16 does not.",
      {
          .spellings =
              {
                  {"mixed precision", Meaning::kFormat, false, "accelerate"},
                  {"optim wrapper type", Meaning::kSwitch},
                  {"amp dtype|precision|type ?torch ?train", Meaning::kFormat},
                  {"autocast dtype|precision|type", Meaning::kFormat},
                  {"mixed precision dtype|type|param|mode ?train", Meaning::kFormat},
                  {"torch dtype", Meaning::kFormat},
                  {"precision ?train ?trainer ?compute ?plugin", Meaning::kFormat},
                  {"dtype ?train ?compute ?model", Meaning::kFormat, true},
                  {"amp ?use ?enable ?native ?train ?torch ?cuda ?with", Meaning::kSwitch},
                  {"mixed precision ?use ?enable ?train ?automatic ?auto", Meaning::kSwitch},
                  {"autocast ?use ?enable ?train", Meaning::kSwitch},
                  {"fp16|float16 ?use ?enable ?train ?amp ?precision", Meaning::kMeansFp16},
                  {"bf16|bfloat16 ?use ?enable ?train ?amp ?precision", Meaning::kMeansBf16},
              },
          .topic = "amp precision dtype fp16 bf16",
          .never_under = "model models fsdp quantize quantization quantizer offload predict prediction inference infer "
                         "checkpoint export tokenizer teacher vae generation",
          .environment = "ACCELERATE_MIXED_PRECISION",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
