#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_communication_bound(const Context& context, const Policy& policy) {
  const auto& timeline = context.signals.timeline;
  if (!timeline) {
    return Missing{detail::kTimelineMissing};
  }
  const double share = timeline->communication_alone;
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.evidence = {
      context.say("in the profiled steps the device exchanges data with others for {} of the time; for {} it does "
                  "nothing else",
                  format_share(timeline->communication), format_share(share)),
      "a late rank makes the others wait in the exchange: the traces of all ranks, given together, show which one",
  };
  knobs::Change fix =
      detail::make_fix(context, "batch.accumulation", {},
                       "exchange less, or during the backward pass: no_sync() while gradients accumulate, "
                       "16-bit gradients, larger DistributedDataParallel buckets, FSDP prefetching");
  fix.in_code = true;
  fix.by_hand = true;
  finding.fixes.push_back(std::move(fix));
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
          "critical from critical_share (30 %).",
      .needs = "a profiler's trace or window with the device's kernels",
      .proposes = "less exchange, or exchange during the backward pass",
      .evaluate = evaluate_communication_bound,
      .counts = Counts::kDeviceTime,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
