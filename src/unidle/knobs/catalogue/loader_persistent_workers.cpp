#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_persistent_workers() {
  static const Knob kKnob{
      .name = "loader.persistent_workers",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kExact,
      .fallback = false,
      .explanation =
          "Keeps the loader's workers alive between epochs; starting them anew costs a visible pause when "
          "epochs are short.",
      .names =
          {
              .spellings =
                  {
                      {"persistent worker ?data ?loader ?use ?train ?enable"},
                  },
              .topic = "persistent",
          },
      .change =
          {
              .at_run_time = true,
              .code = "DataLoader(..., persistent_workers={0})",
              .code_place = "loader",
              .argument = "persistent_workers",
          },
      .compared = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
