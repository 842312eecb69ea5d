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
  const double share = std::min(1.0, of_forward) * *context.compute;
  if (share < policy.attention_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.severity = Severity::kInfo;  // the number of positions, on which the gain depends, is unknown
  finding.speedup_bound.reset();
  finding.where = detail::place(signals.attention.front().where);
  finding.evidence.push_back(
      context.say("{} of the stack samples of the forward pass are in attention that computes its weights as a matrix",
                  format_share(of_forward)));
  if (context.on_gpu) {  // the host's samples show launches, not what the device computes
    finding.share.reset();
  }
  return finding;
}

}  // namespace

const Rule& attention_weights() {
  static const Rule kRule{
      .id = "attention-weights",
      .verdict = Verdict::kComputeBound,
      .title = "The attention computes weights that its caller may not need",
      .topic = "weights of attention",
      .explanation =
          "nn.MultiheadAttention returns its weights as well, unless it is called with need_weights=False. For that it "
          "computes, keeps and differentiates a matrix of all pairs of positions. Without them it calls "
          "scaled_dot_product_attention, which does not (torch's documentation recommends need_weights=False for that "
          "reason). Many programs ignore the second result: `out, _ = self.attention(x, x, x)`.",
      .thresholds =
          "Stack samples of the forward pass in the lines of torch that compute the weights, times the share of "
          "forward "
          "and backward pass, from attention_share (25 %) of the wall time. Always a hint, because the gain depends on "
          "the number of positions: 2.8x with 784 of them, none with 32 to 197 (two CPUs). On a GPU without a share: "
          "stack samples show the host.",
      .needs = "step times, stack samples of the forward pass",
      .proposes = "pass need_weights=False there if its second result is not used and sequences are long",
      .evaluate = evaluate_attention_weights,
      .counts = Counts::kOther,
      .sentence =
          "Your model spends {share} of the run on attention that returns its weights ({where}); if nobody "
          "uses them and sequences are long, need_weights=False makes it faster",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
