#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// True when each tensor has its own kernels or calls.
std::optional<bool> per_tensor(const Context& context) {
  const auto& optimizer = context.signals.optimizer;
  const auto setting = detail::effective_on(context, "optimizer.fused");
  if (!optimizer && !setting) {
    return std::nullopt;
  }
  if (setting.value_or(false) || (optimizer && optimizer->fused.value_or(false))) {
    return false;
  }
  if (optimizer && (optimizer->fusable == false || context.signals.sparse_gradients)) {
    return false;
  }
  // By default torch groups tensors (foreach) on a GPU but not on a CPU.
  return optimizer && optimizer->foreach ? !*optimizer->foreach : context.on_cpu || !optimizer;
}

Evaluation evaluate_optimizer_not_fused(const Context& context, const Policy& policy) {
  const auto slow = per_tensor(context);
  if (!slow) {
    return Missing{"how the optimiser updates its tensors (effective optimizer.fused)"};
  }
  if (!*slow) {
    return Nothing{};
  }
  if (!context.optimizer) {
    return Missing{context.no_steps};
  }
  const auto& optimizer = context.signals.optimizer;
  const double part = std::clamp(optimizer && optimizer->part ? *optimizer->part : 1.0, 0.0, 1.0);
  const double share = *context.optimizer * part * (1 - 1 / policy.fused_gain);
  if (share < policy.trial_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.severity = share < policy.warning_share ? Severity::kInfo : Severity::kWarning;
  finding.where = optimizer && !optimizer->where.empty() ? detail::place(optimizer->where)
                                                         : detail::where_set(context, "optimizer.fused");
  finding.evidence.push_back(
      context.say("the optimiser takes {} of each step", format_share(context.signals.step->optimizer)));
  if (optimizer && optimizer->tensors) {
    finding.evidence.push_back(context.say("{} updates {} tensors one by one", optimizer->name, *optimizer->tensors));
  }
  if (optimizer && !optimizer->also.empty()) {
    finding.evidence.push_back(context.say("other optimisers are made at {}", optimizer->also));
  }
  if (context.crowded_out) {  // its many small operations wait most for threads that have no CPU
    finding.severity = Severity::kInfo;
    finding.share.reset();
    finding.speedup_bound.reset();
    finding.evidence.push_back("other processes took CPUs: how much of that is the optimiser's own was not measured");
  }
  if (context.keeps_up) {
    finding.share.reset();
    finding.speedup_bound.reset();
    finding.evidence.push_back("how long the device idles meanwhile was not measured");
  }
  finding.fixes.push_back(detail::make_fix(context, "optimizer.fused", true, "pass fused=True to the optimiser"));
  return finding;
}

}  // namespace

const Rule& optimizer_not_fused() {
  static const Rule kRule{
      .id = "optimizer-not-fused",
      .verdict = Verdict::kComputeBound,
      .title = "The optimiser updates one tensor after the other",
      .topic = "optimiser",
      .explanation =
          "A plain optimiser runs a dozen operations for every parameter tensor; a fused one updates all of them in a "
          "few kernels. Networks with many small tensors and small batches spend a visible part of each step on that. "
          "Nothing is said of optimisers without a fused form (SparseAdam, RMSprop) or with sparse gradients.",
      .thresholds =
          "The optimiser's part of the wall time x (1 - 1/fused_gain), gain 4 (fused AdamW of torch 2.11 took 4.8 to "
          "5.3 times less than the plain loop on one CPU core), from warning_share (10 %). A warning at most; a hint "
          "from trial_share (5 %), and where other processes take the CPUs (crowded_out, 30 %). Without a share where "
          "a "
          "device keeps up with the host and nothing measured how long kernels run.",
      .needs = "the effective optimizer.fused or how the optimiser was made, step times with the optimiser",
      .proposes = "optimizer.fused",
      .evaluate = evaluate_optimizer_not_fused,
      .counts = Counts::kHostTime,
      .sentence = "Your optimiser loses {share} of the run by updating one tensor after the other",
      .shows = Symptom::kUseOfDevice,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
