#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& cpu_threads() {
  static const Knob kKnob{
      "cpu.threads",
      ValueType::kInt,
      KnobClass::kNumeric,
      {},
      "0",
      "Threads for arithmetic on the CPU; 0 leaves the choice to the program. More than the CPUs that "
      "the job may use make it slower.",
      {
          .spellings =
              {
                  {"thread num|n|omp|cpu|torch ?num ?cpu ?torch ?intraop ?intra ?op"},
              },
          .topic = "thread",
          .never_under = "predictor server",
          .environment = "OMP_NUM_THREADS",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
