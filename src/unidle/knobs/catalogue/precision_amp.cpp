#include <fmt/format.h>

#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

namespace {

std::string precision_code(const Value& value, const std::string& device) {
  if (value == "off") {
    return "no torch.autocast around the forward pass";
  }
  const std::string kind = device == "cpu" ? "cpu" : "cuda";
  const std::string around = fmt::format("with torch.autocast(\"{}\", dtype=torch.{}): around the forward pass", kind,
                                         value == "bf16" ? "bfloat16" : "float16");
  return value == "bf16" ? around
                         : around + fmt::format(
                                        ", and a torch.amp.GradScaler(\"{}\"): scaler.scale(loss).backward(), "
                                        "scaler.unscale_(optimizer) before gradients are clipped, "
                                        "scaler.step(optimizer), scaler.update()",
                                        kind);
}

}  // namespace

const Knob& precision_amp() {
  static const Knob kKnob{
      .name = "precision.amp",
      .type = ValueType::kChoice,
      .knob_class = KnobClass::kNumeric,
      .choices = {"off", "fp16", "bf16"},
      .fallback = "off",
      .explanation =
          "Runs matrix products and convolutions in a 16-bit format; worth it only where the hardware has "
          "units for it. fp16 needs loss scaling, bf16 does not.",
      .names =
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
                      {"auto mix prec", Meaning::kMeansFp16, false, "speechbrain"},
                      {"fp16|float16 ?use ?enable ?train ?amp ?precision", Meaning::kMeansFp16},
                      {"bf16|bfloat16 ?use ?enable ?train ?amp ?precision", Meaning::kMeansBf16},
                  },
              .topic = "amp precision dtype fp16 bf16",
              .never_under =
                  "model models fsdp quantize quantization quantizer offload predict prediction inference infer "
                  "checkpoint export tokenizer teacher vae generation gen groupnorm layernorm rmsnorm",
              .own_values = {"16-mixed", "bf16-mixed", "16-true", "bf16-true", "32-true"},
              .environment = "ACCELERATE_MIXED_PRECISION",
          },
      .change =
          {
              .at_run_time = true,
              .code_for = precision_code,
              .code_place = "model",
          },
      .compared = true,
      .leaves_open = {"auto"},
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
