#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_allocates_while_idle(const Context& context, const Policy& policy) {
  const auto& timeline = context.signals.timeline;
  if (!timeline) {
    return Missing{detail::kTimelineMissing};
  }
  if (timeline->allocator < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_idle(context, policy, timeline->allocator);
  finding.evidence.emplace_back(
      "calls such as cudaMalloc and cudaFree: the first steps, empty_cache() and sizes that grow make them");
  detail::add_caveats(context, finding);
  return finding;
}

}  // namespace

const Rule& allocates_while_idle() {
  static const Rule kRule{
      .id = "allocates-while-idle",
      .verdict = Verdict::kOverheadBound,
      .title = "The device idles while the host asks for memory",
      .topic = "calls for device memory",
      .explanation =
          "cudaMalloc and cudaFree make the host wait for the device and take up to milliseconds, the first "
          "of them also sets up the device. The allocator of torch asks for memory once and keeps it; calls "
          "in the middle of training mean that it is emptied, that memory is nearly full or in pieces, or "
          "that the window holds the first steps.",
      .thresholds =
          "Idle time of the device in which the host is in calls that ask for device memory or give it back: "
          "from warning_share (10 %) of the wall time; critical from critical_share (30 %).",
      .needs = "a profiler's trace or window with the device's kernels and the host's calls",
      .proposes =
          "no torch.cuda.empty_cache() in the loop; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; profile"
          " after the first steps",
      .evaluate = evaluate_allocates_while_idle,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
