#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& memory_keep_freed() {
  static const Knob kKnob{
      .name = "memory.keep_freed",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kExact,
      .fallback = false,
      .explanation =
          "Keeps memory that is freed in the process, so that the system need not zero it again for the next large "
          "tensor. The process may need half as much memory more.",
      .change =
          {
              .at_run_time = true,
              .code = "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1 in the environment, before Python starts",
              .variables = "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
