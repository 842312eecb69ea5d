#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_padding_waste(const Context& context, const Policy& policy) {
  const auto& padding = context.signals.padding;
  if (!padding || padding->padded <= 0) {
    return Missing{"how much of the batches is padding"};
  }
  if (!context.computing) {
    return Missing{context.no_computing};
  }
  const double waste = std::clamp(1 - padding->real / padding->padded, 0.0, 1.0);
  const double share = *context.computing * waste;
  if (waste < policy.padding || share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::place(padding->where);
  finding.evidence = {
      context.say("{} of all elements in the batches are padding", format_share(waste)),
      context.say("forward and backward take {} of the wall time, on padding too", format_share(*context.computing)),
  };
  return finding;
}

}  // namespace

const Rule& padding_waste() {
  static const Rule kRule{
      .id = "padding-waste",
      .verdict = Verdict::kComputeBound,
      .title = "A large share of the batch is padding",
      .topic = "padding",
      .explanation =
          "Sequences of different lengths are filled up to the longest of their batch, and the step computes on the "
          "filling as well. Batches of similar lengths (buckets) or a budget of tokens instead of samples waste "
          "little.",
      .thresholds =
          "From padding (30 %) of all elements; the share counts compute in proportion, which holds for layers that "
          "are linear in the length and is too low for attention; from warning_share (10 %) of the wall time.",
      .needs = "real and padded elements of the batches, step times",
      .proposes =
          "pad each batch to its own longest sequence instead of a fixed length, and put sequences of similar length "
          "into one batch (buckets or a token budget; in transformers a tokenizer that does not pad, "
          "DataCollatorWithPadding and group_by_length=True)",
      .evaluate = evaluate_padding_waste,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} spends {share} of the run on padding",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
