#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_pin_memory() {
  static const Knob kKnob{
      "loader.pin_memory",
      ValueType::kBool,
      KnobClass::kExact,
      {},
      "false",
      "Puts batches into page-locked memory, from which a GPU can fetch them without the host copying "
      "first; of no use without a GPU.",
      {
          .spellings =
              {
                  {"no pin memory|mem", Meaning::kInverted},
                  {"pin memory|mem ?data ?loader ?use ?train ?enable ?device"},
              },
          .topic = "pin",
          .never_under = "offload zero param swap cache fsdp fsdp2",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
