#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& batch_trim_padding() {
  static const Knob kKnob{
      .name = "batch.trim_padding",
      .type = ValueType::kBool,
      .knob_class = KnobClass::kNumeric,
      .fallback = false,
      .explanation =
          "Ends each training batch after its longest sequence, which its padding mask shows. Layers that apply the "
          "mask give the same results.",
      .change =
          {
              .at_run_time = true,
              .not_at_run_time = {Value(false)},
              .code = "longest = int(mask.sum(1).max()); tokens, mask = tokens[:, :longest], mask[:, :longest]  # in "
                      "transformers: no padding= for the tokenizer, and DataCollatorWithPadding(tokenizer)",
          },
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
