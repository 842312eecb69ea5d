#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& optimizer_lr() {
  static const Knob kKnob{
      .name = "optimizer.lr",
      .type = ValueType::kDouble,
      .knob_class = KnobClass::kSemantic,
      .fallback = 0.001,
      .explanation = "The learning rate.",
      .names =
          {
              .spellings =
                  {
                      {"lr ?base ?init ?initial ?peak ?max ?train ?model ?backbone ?head ?encoder ?decoder ?vision "
                       "?text "
                       "?image "
                       "?language ?llm ?g ?d ?gen ?generator ?disc ?discriminator ?unet ?adapter ?lora ?embedding "
                       "?embed "
                       "?unembedding "
                       "?matrix ?scalar ?muon ?adam ?adamw ?sgd ?optimizer ?optim ?actor ?critic ?policy ?projector "
                       "?trunk ?wav2vec"},
                  },
              .topic = "lr",
              .never_under = "scheduler schedule sched warmup swa finder schedulers",
              .but_under = "optimizer optim",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
