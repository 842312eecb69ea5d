#include <fmt/format.h>

#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

namespace {

std::string compile_code(const Value& value, const std::string& /*device*/) {
  return value == "off"       ? "no torch.compile"
         : value == "default" ? "model = torch.compile(model)"
                              : fmt::format("model = torch.compile(model, mode=\"{}\")", value);
}

}  // namespace

const Knob& compile_mode() {
  static const Knob kKnob{
      .name = "compile.mode",
      .type = ValueType::kChoice,
      .knob_class = KnobClass::kNumeric,
      .choices = {"off", "default", "reduce-overhead", "max-autotune", "graph", "fused"},
      .fallback = "off",
      .explanation =
          "Compiles the step or captures it as one graph, which removes launch overhead and fuses "
          "element-wise work; compiling takes time at the start.",
      .names =
          {
              .spellings =
                  {
                      {"compile mode|backend|component|fullgraph|dynamic|option ?torch ?model", Meaning::kOption},
                      {"compile ?torch ?use ?model ?enable ?do ?with ?train", Meaning::kSwitch},
                      {"torchcompile ?use ?enable", Meaning::kSwitch},
                  },
              .topic = "compile",
              .never_under = "inference predict export deepspeed",
          },
      .change =
          {
              .at_run_time = true,
              .not_at_run_time = {"graph", "fused"},
              .code_for = compile_code,
              .code_place = "model",
          },
      .compared = true,
      .leaves_open = {"auto"},
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
