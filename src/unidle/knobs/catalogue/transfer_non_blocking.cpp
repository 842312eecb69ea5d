#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& transfer_non_blocking() {
  static const Knob kKnob{
      "transfer.non_blocking",
      ValueType::kBool,
      KnobClass::kExact,
      {},
      "false",
      "Lets host-to-device copies run beside the computation; takes effect only from page-locked "
      "memory.",
      {
          .spellings =
              {
                  {"non blocking ?transfer ?use ?copy ?to ?device ?data"},
              },
          .topic = "blocking",
          .never_under = "offload",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
