#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& loader_workers() {
  static const Knob kKnob{
      "loader.workers",
      ValueType::kInt,
      KnobClass::kExact,
      {},
      "0",
      "How many threads or processes prepare samples beside the training step; 0 means that the step "
      "waits for every sample.",
      {
          .spellings =
              {
                  {"worker ?num ?n ?nb ?number ?of ?train ?data ?loader ?per ?gpu ?device ?count ?cpu ?process"},
              },
          .topic = "worker",
          .never_under = "ray dask rollout env server preprocess preprocessing cache tokenizer metric metrics download "
                         "predictor inference",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
