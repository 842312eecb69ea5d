#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& cpu_threads() {
  static const Knob kKnob{
      .name = "cpu.threads",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kNumeric,
      .fallback = 0,
      .explanation =
          "Threads for arithmetic on the CPU; 0 leaves the choice to the program. More than the CPUs that "
          "the job may use make it slower.",
      .names =
          {
              .spellings =
                  {
                      {"thread num|n|omp|cpu|torch ?num ?cpu ?torch ?intraop ?intra ?op"},
                  },
              .topic = "thread",
              .never_under = "predictor server",
              .environment = "OMP_NUM_THREADS",
          },
      .change =
          {
              .at_run_time = true,
              .code = "torch.set_num_threads({0})",
          },
      .compared = true,
      .leaves_open = {"0"},
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
