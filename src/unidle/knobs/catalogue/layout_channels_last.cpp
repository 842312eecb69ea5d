#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

namespace {

std::string layout_code(const Value& value, const std::string& /*device*/) {
  return value == true ? "model.to(memory_format=torch.channels_last), inputs.to(memory_format=torch.channels_last)"
                       : "no memory_format=torch.channels_last";
}

}  // namespace

const Knob& layout_channels_last() {
  static const Knob kKnob{
      .name = "layout.channels_last",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kNumeric,
      .fallback = false,
      .explanation =
          "Stores pictures and convolution weights with the channels innermost, the order that "
          "low-precision GPU kernels and CPU kernels work in.",
      .names =
          {
              .spellings =
                  {
                      {"channel last ?use ?enable ?memory ?format"},
                      {"nhwc ?use ?enable"},
                      {"memory format ?torch ?model", Meaning::kMemoryFormat},
                  },
              .topic = "channel nhwc format",
          },
      .change =
          {
              .at_run_time = true,
              .code_for = layout_code,
              .code_place = "model",
          },
      .compared = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
