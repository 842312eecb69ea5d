#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& transfer_non_blocking() {
  static const Knob kKnob{
      .name = "transfer.non_blocking",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kExact,
      .fallback = false,
      .explanation =
          "Lets host-to-device copies run beside the computation; takes effect only from page-locked "
          "memory.",
      .names =
          {
              .spellings =
                  {
                      {"non blocking ?transfer ?use ?copy ?to ?device ?data"},
                  },
              .topic = "blocking",
              .never_under = "offload",
          },
      .change =
          {
              .at_run_time = true,
              .code = "batch.to(device, non_blocking={0})",
          },
      .gpu_only = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
