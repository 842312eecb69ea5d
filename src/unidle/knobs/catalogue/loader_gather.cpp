#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_gather() {
  static const Knob kKnob{
      .name = "loader.gather",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kExact,
      .fallback = false,
      .explanation =
          "Takes the rows of a batch from data in memory by one indexing operation instead of one call a row.",
      .change =
          {
              .at_run_time = true,
              .code = "DataLoader(dataset, sampler=BatchSampler(RandomSampler(dataset), batch_size, drop_last), "
                      "batch_size=None): the dataset then gets a list of indices",
              .code_place = "loader",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
