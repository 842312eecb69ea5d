#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// If batches go on beyond their longest sequence, they are to end after it, by the knob where the run can take it.
/// Otherwise sequences of similar length are to be put into one batch.
void add_fixes_of_padding(const Context& context, const Policy& policy, const PaddingFacts& padding, Finding& finding) {
  const double beyond = padding.longest ? std::clamp(1 - *padding.longest / padding.padded, 0.0, 1.0) : 0;
  if (beyond < policy.trimmed_padding || detail::effective_on(context, "batch.trim_padding").value_or(false)) {
    finding.proposes =
        "put sequences of similar length into one batch (buckets, a token budget, or group_by_length in "
        "transformers)";
    return;
  }
  finding.evidence.push_back(
      context.say("{} of all elements come after the longest sequence of their batch", format_share(beyond)));
  constexpr const char* kHow =
      "pad each batch to its own longest sequence instead of a fixed length (in transformers: a tokenizer that does "
      "not pad, and DataCollatorWithPadding)";
  finding.fixes.push_back(padding.cuts ? detail::make_fix(context, "batch.trim_padding", true, kHow)
                                       : detail::code_fix(context, "batch.trim_padding", kHow));
}

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
  add_fixes_of_padding(context, policy, *padding, finding);
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
          "are linear in the length and is too low for attention; from warning_share (10 %) of the wall time. Batches "
          "are to end after their longest sequence if at least trimmed_padding (10 %) of all elements come after it.",
      .needs = "how many elements of the batches are real, are padding, or lie within the longest sequence; step times",
      .proposes =
          "batches that end after their longest sequence: batch.trim_padding, or a change where the program pads to a "
          "fixed length; sequences of similar length in one batch if they end there already",
      .evaluate = evaluate_padding_waste,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} spends {share} of the run on padding",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
