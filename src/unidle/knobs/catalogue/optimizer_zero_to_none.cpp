#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& optimizer_zero_to_none() {
  static const Knob kKnob{
      "optimizer.zero_to_none",
      ValueType::kBool,
      KnobClass::kExact,
      {},
      "true",
      "Drops gradients between steps instead of filling them with zeros, which saves a pass over "
      "memory.",
      {
          .spellings =
              {
                  {"set to none ?zero ?grad ?optimizer"},
              },
          .topic = "none",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
