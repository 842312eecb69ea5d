#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& optimizer_lr() {
  static const Knob kKnob{
      "optimizer.lr",
      ValueType::kDouble,
      KnobClass::kSemantic,
      {},
      "0.001",
      "The learning rate.",
      {
          .spellings =
              {
                  {"lr ?base ?init ?initial ?peak ?max ?train ?model ?backbone ?head ?encoder ?decoder ?vision ?text "
                   "?image "
                   "?language ?g ?d ?gen ?generator ?disc ?discriminator ?unet ?adapter ?lora ?embedding ?embed "
                   "?unembedding "
                   "?matrix ?scalar ?muon ?adam ?adamw ?sgd ?optimizer ?optim ?actor ?critic ?policy ?projector "
                   "?trunk"},
              },
          .topic = "lr",
          .never_under = "scheduler schedule sched warmup swa finder schedulers",
      },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
