#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& metrics_interval() {
  static const Knob kKnob{
      "metrics.interval",
      ValueType::kInt,
      KnobClass::kExact,
      {},
      "1",
      "How many optimiser steps lie between two readings of the loss; every reading makes the host "
      "wait for the device. In a running program: how many reads an .item() may come late.",
      {
          .spellings =
              {
                  {"log|logging|print interval|freq|frequency|step|every ?n ?step ?iter"},
              },
          .topic = "log logging print",
          .never_under = "wandb checkpoint",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
