#include <algorithm>
#include <cstdint>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_attention_weights(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (signals.hot.empty()) {
    return Missing{"which lines of the model compute (stack samples)"};
  }
  if (!signals.step || !context.train || !context.compute) {
    return Missing{context.no_steps};
  }
  if (signals.attention.empty() || signals.attention.front().of_looks < detail::kEnoughStackSamples) {
    return Nothing{};
  }
  std::int64_t looks = 0;
  for (const AttentionPlace& place : signals.attention) {
    looks += place.looks;
  }
  const double of_forward = static_cast<double>(looks) / static_cast<double>(signals.attention.front().of_looks);
  const double share = std::min(1.0, of_forward) * *context.compute * (1 - 1 / policy.attention_gain);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::place(signals.attention.front().where);
  finding.evidence.push_back(
      context.say("{} of the stack samples of the forward pass are in attention that computes its weights as a matrix",
                  format_share(of_forward)));
  if (context.on_gpu) {  // the host's samples show launches, not what the device computes
    finding.severity = Severity::kInfo;
    finding.share.reset();
    finding.speedup_bound.reset();
  }
  return finding;
}

}  // namespace

const Rule& attention_weights() {
  static const Rule kRule{
      .id = "attention-weights",
      .verdict = Verdict::kComputeBound,
      .title = "The attention computes weights that its caller may not need",
      .topic = "attention",
      .explanation =
          "nn.MultiheadAttention returns its weights as well, unless it is called with need_weights=False. For that it "
          "computes, keeps and differentiates a matrix of all pairs of positions. Without them it calls "
          "scaled_dot_product_attention, which does not (torch's documentation recommends need_weights=False for that "
          "reason). Many programs ignore the second result: `out, _ = self.attention(x, x, x)`.",
      .thresholds =
          "Stack samples of the forward pass in the lines of torch that compute the weights, times the share of forward "
          "and backward pass, x (1 - 1/attention_gain), gain 3; from warning_share (10 %) of the wall time; critical "
          "from critical_share (30 %). On a GPU a hint without a share: stack samples show the host.",
      .needs = "step times, stack samples of the forward pass",
      .proposes = "pass need_weights=False there if its second result is not used",
      .evaluate = evaluate_attention_weights,
      .counts = Counts::kOther,
      .sentence = "Your model spends {share} of the run on attention weights that {where} may not need",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
