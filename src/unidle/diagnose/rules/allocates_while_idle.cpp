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
      "calls such as cudaMalloc and cudaFree: they come from the first steps, empty_cache() and growing sizes");
  detail::add_caveats(context, finding);
  return finding;
}

}  // namespace

const Rule& allocates_while_idle() {
  static const Rule kRule{
      .id = "allocates-while-idle",
      .verdict = Verdict::kOverheadBound,
      .title = "The device idles while the host allocates memory",
      .topic = "calls for device memory",
      .explanation =
          "cudaMalloc and cudaFree make the host wait for the device and take up to milliseconds; the first call also "
          "sets up the device. torch's allocator keeps the memory that it has allocated. Calls in the middle of "
          "training mean that its cache is emptied, that memory is nearly full or fragmented, or that the window "
          "contains the first steps.",
      .thresholds =
          "Idle time of the device while the host is in calls that allocate or free device memory: from warning_share "
          "(10 %) of the wall time; critical from critical_share (30 %).",
      .needs = "a profiler's trace or window with the device's kernels and the host's calls",
      .proposes =
          "take torch.cuda.empty_cache() out of the loop, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and "
          "profile after the first steps",
      .evaluate = evaluate_allocates_while_idle,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} idles {share} of the time while the host allocates memory",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
