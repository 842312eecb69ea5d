#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_replace() {
  static const Knob kKnob{
      .name = "loader.replace",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kNumeric,
      .fallback = false,
      .explanation =
          "Takes the samples from a source of unidle.data instead of the program's data set, where that is known to "
          "give the same ones; order and random crops are drawn anew.",
      .change =
          {
              .code = "unidle.data.Loader(unidle.data.like(dataset), batch_size): see the patch",
              .code_place = "loader",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
