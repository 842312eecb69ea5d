#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_persistent_workers() {
  static const Knob kKnob{
      "loader.persistent_workers",
      ValueType::kBool,
      KnobClass::kExact,
      {},
      "false",
      "Keeps the loader's workers alive between epochs; starting them anew costs a visible pause when "
      "epochs are short.",
      {
          .spellings =
              {
                  {"persistent worker ?data ?loader ?use ?train ?enable"},
              },
          .topic = "persistent",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
