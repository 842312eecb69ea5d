#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& metrics_interval() {
  static const Knob kKnob{
      .name = "metrics.interval",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kExact,
      .fallback = 1,
      .explanation =
          "How many optimiser steps lie between two readings of the loss; every reading makes the host "
          "wait for the device.",
      .names =
          {
              .spellings =
                  {
                      {"log|logging|logger|print interval|freq|frequency|step|iter|every ?n ?step ?iter ?train ?loss "
                       "?metric "
                       "?metrics"},
                      {"report every|interval|freq|frequency ?step ?iter"},
                  },
              .topic = "log logging print",
              .never_under = "wandb checkpoint",
          },
      .change =
          {
              .code = "add up the loss on the device (total += loss.detach()) and read it with .item() every {0} steps",
          },
      .gpu_only = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
