#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// The share of a step that each rank waits for gradients of others, in the rank that waits least: nobody is late
/// there, so that it is the exchange itself. Nothing when fewer than two ranks reported.
std::optional<double> least_wait(const std::vector<RankTime>& ranks) {
  std::optional<double> least;
  for (const RankTime& rank : ranks) {
    if (rank.step_s > 0) {
      least = std::min(least.value_or(1), rank.wait_s / rank.step_s);
    }
  }
  return ranks.size() < 2 ? std::nullopt : least;
}

/// The share of the wall time in which nothing but the exchange runs, and how that is known.
struct Exchange {
  double share = 0;
  std::vector<std::string> evidence;
};

std::optional<Exchange> exchange_of(const Context& context) {
  if (const auto& timeline = context.signals.timeline) {
    const double alone = timeline->communication_alone;
    return Exchange{
        alone,
        {context.say("in the profiled steps the device exchanges data with others for {} of the time; for {} it does "
                     "nothing else",
                     format_share(timeline->communication), format_share(alone)),
         "a late rank makes the others wait in the exchange: the traces of all ranks, given together, show which one"}};
  }
  const double waits = least_wait(context.signals.ranks).value_or(-1);
  if (waits < 0 || !context.train) {
    return std::nullopt;
  }
  return Exchange{
      waits * *context.train,
      {context.say("even the rank that waits least waits {} of each step for gradients, after its backward pass",
                   format_share(waits))}};
}

Evaluation evaluate_communication_bound(const Context& context, const Policy& policy) {
  auto exchange = exchange_of(context);
  if (!exchange) {
    return Missing{detail::kTimelineMissing};
  }
  if (exchange->share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(exchange->share, policy);
  finding.evidence = std::move(exchange->evidence);
  finding.fixes.push_back(
      detail::code_fix(context, "batch.accumulation",
                       "exchange less, or during the backward pass (no_sync() while gradients accumulate, "
                       "16-bit gradients, larger DistributedDataParallel buckets, FSDP prefetching)"));
  return finding;
}

}  // namespace

const Rule& communication_bound() {
  static const Rule kRule{
      .id = "communication-bound",
      .verdict = Verdict::kCommunicationBound,
      .title = "Exchange between devices does not overlap with computing",
      .topic = "exchange between devices",
      .explanation =
          "Devices that train together exchange gradients, parameters or activations. A communication kernel (NCCL, "
          "RCCL) that runs at the same time as other kernels costs little. One that runs alone makes the device wait "
          "for the link or for a late rank.",
      .thresholds =
          "Time of communication kernels that no other kernel overlaps, from warning_share (10 %) of the wall time; "
          "critical from critical_share (30 %). Without kernels, what the rank that waits least waits for gradients of "
          "others after its backward pass, as DistributedDataParallel itself measured it.",
      .needs = "a profiler's trace or window with the device's kernels, or the waits of several ranks",
      .proposes = "less exchange, or exchange during the backward pass",
      .evaluate = evaluate_communication_bound,
      .counts = Counts::kDeviceTime,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
