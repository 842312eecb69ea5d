#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_compiles_while_idle(const Context& context, const Policy& policy) {
  const auto& timeline = context.signals.timeline;
  if (!timeline) {
    return Missing{detail::kTimelineMissing};
  }
  if (timeline->compile < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_idle(context, policy, timeline->compile);
  finding.evidence.emplace_back(
      "first calls and new shapes compile and load: a trace that begins after some steps shows whether it goes on");
  detail::add_caveats(context, finding);
  return finding;
}

}  // namespace

const Rule& compiles_while_idle() {
  static const Rule kRule{
      .id = "compiles-while-idle",
      .verdict = Verdict::kOverheadBound,
      .title = "The device idles while the host compiles or loads kernels",
      .topic = "compiling and loading",
      .explanation =
          "A kernel is loaded at its first launch, torch.compile and Triton compile at the first call and for every "
          "new shape, and a CUDA graph is captured before it is replayed. All of that is normal at the start of a "
          "run. In a window of steps it means that the window began too early or that shapes vary.",
      .thresholds =
          "Idle time of the device while the host compiles, loads kernels or captures graphs, including launches that "
          "take more than a millisecond: from warning_share (10 %) of the wall time; critical from critical_share (30 "
          "%).",
      .needs = "a profiler's trace or window with the device's kernels and the host's calls",
      .proposes = "keep shapes fixed, and profile after the first steps",
      .evaluate = evaluate_compiles_while_idle,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} idles {share} of the time while the host compiles or loads kernels",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
