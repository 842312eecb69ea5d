#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_workers() {
  static const Knob kKnob{
      .name = "loader.workers",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kExact,
      .fallback = 0,
      .explanation =
          "How many threads or processes prepare samples beside the training step; 0 means that the step "
          "waits for every sample.",
      .names =
          {
              .spellings =
                  {
                      {"worker ?num ?n ?nb ?number ?of ?train ?data ?loader ?per ?gpu ?device ?count ?cpu ?process"},
                      {"max data loader worker ?n ?num"},
                  },
              .topic = "worker",
              .never_under =
                  "ray dask rollout env server preprocess preprocessing cache tokenizer metric metrics download "
                  "predictor inference reward tool agent sandbox judge",
          },
      .change =
          {
              .at_run_time = true,
              .code = "DataLoader(..., num_workers={0})",
              .code_place = "loader",
              .argument = "num_workers",
              .package_code = "unidle.data.Loader(..., workers={0})",
              .package_argument = "workers",
          },
      .compared = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
