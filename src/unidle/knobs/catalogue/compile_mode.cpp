#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& compile_mode() {
  static const Knob kKnob{
      "compile.mode",
      ValueType::kChoice,
      KnobClass::kNumeric,
      {"off", "default", "reduce-overhead", "max-autotune", "graph"},
      "off",
      "Compiles the step or captures it as one graph, which removes launch overhead and fuses "
      "element-wise work; compiling takes time at the start.",
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
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
