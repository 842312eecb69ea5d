#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_pin_memory() {
  static const Knob kKnob{
      .name = "loader.pin_memory",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kExact,
      .fallback = false,
      .explanation =
          "Puts batches into page-locked memory, from which a GPU can fetch them without the host copying "
          "first; of no use without a GPU.",
      .names =
          {
              .spellings =
                  {
                      {"no pin memory|mem", Meaning::kInverted},
                      {"pin memory|mem ?data ?loader ?use ?train ?enable ?device"},
                  },
              .topic = "pin",
              .never_under = "offload zero param swap cache fsdp fsdp2",
          },
      .change =
          {
              .at_run_time = true,
              .code = "DataLoader(..., pin_memory={0})",
              .code_place = "loader",
              .argument = "pin_memory",
              .package_code = "unidle.data.Loader(..., device=\"cuda\")",
          },
      .gpu_only = true,
      .compared = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
