#include "unidle/base/units.h"
#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_host_elsewhere(const Context& context, const Policy& policy) {
  const auto& timeline = context.signals.timeline;
  if (!timeline) {
    return Missing{detail::kTimelineMissing};
  }
  if (timeline->host < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_idle(context, policy, timeline->host);
  finding.evidence.emplace_back("the host launches nothing for more than a millisecond at a time");
  if (timeline->unnamed > timeline->host / 2) {
    const std::string share = format_share(timeline->unnamed);
    finding.evidence.push_back(
        timeline->python_frames
            ? context.say("for {} of the time no thread has an event", share)
            : context.say("for {} of the time no thread has an event: without Python frames a profiler records only "
                          "operators and CUDA calls",
                          share));
    finding.sentence =
        "Your {device} idles {share} of the time while the host launches nothing, and the trace does not show what it "
        "does then";
    finding.proposes = timeline->python_frames
                           ? "profile the process with a tool that records native code, which this trace does not show"
                           : "profile with with_stack=True, which records every Python function";
  }
  detail::add_caveats(context, finding);
  return finding;
}

}  // namespace

const Rule& host_elsewhere() {
  static const Rule kRule{
      .id = "host-elsewhere",
      .verdict = Verdict::kOverheadBound,
      .title = "The host does something else while the device idles",
      .topic = "the host's other work",
      .explanation =
          "The device idles while the host launches nothing for more than a millisecond: it makes samples outside of "
          "a loader, works on CPU tensors, writes files, or runs Python code that launches nothing. The trace names "
          "that work where the profiler records it.",
      .thresholds =
          "Idle time of the device while the thread that launches next launches nothing for more than a millisecond, "
          "and does not fetch a batch, compile, allocate memory, copy or wait: from warning_share (10 %) of the wall "
          "time; critical from critical_share (30 %).",
      .needs = "a profiler's trace or window with the device's kernels and the host's calls",
      .proposes = "look at the work that the trace names",
      .evaluate = evaluate_host_elsewhere,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} idles {share} of the time while the host does other work than launching kernels",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
