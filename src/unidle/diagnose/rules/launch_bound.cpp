#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// True when the device's units are mostly unused, and it is unknown whether the device waits for the host.
bool units_wait(const Context& context, const Policy& policy) {
  return !context.signals.device_kept_up && !context.signals.kernel_time_known &&
         context.units_in_use.value_or(1) < policy.far_from_full;
}

/// Neither NVML nor events show the gaps between kernels. They follow from a queue that is empty whenever the host
/// submits more, and from units without work.
Evaluation unmeasured_gaps(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const double waits = *context.input + *context.transfer + *context.sync;
  if (waits >= policy.launch_share) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.where = detail::where_set(context, "compile.mode");
  if (context.keeps_up) {
    finding.evidence.push_back(
        context.say("in {} of the steps the device had done all that was queued when the host came to the optimiser: "
                    "it waits for the host to launch",
                    format_share(*signals.device_kept_up)));
  }
  if (signals.sm_activity) {
    finding.evidence.push_back(context.say(
        "SM activity is {}, while NVML or events call the device {} busy: kernels are short, or have few blocks each",
        format_share(*signals.sm_activity), format_share(*signals.device_busy)));
  }
  finding.evidence.emplace_back(
      "how long it waits was not measured: NVML and events count the gaps between kernels as work; run --kernels or a "
      "profiler's window tell");
  if (!detail::effective_on(context, "compile.mode").value_or(false)) {
    finding.fixes.push_back(detail::one_launch_fix(context));
  }
  return finding;
}

/// The trace itself shows what launching costs, even with few steps.
Evaluation by_timeline(const Context& context, const DeviceTimeline& timeline, const Policy& policy) {
  if (timeline.launch < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_idle(context, policy, timeline.launch);
  const auto& kernels = context.signals.kernels;
  if (kernels && timeline.launch_every_s) {
    finding.evidence.push_back(context.say("a kernel takes {} on average, and the host launches one every {}",
                                           format_seconds(kernels->mean_s), format_seconds(*timeline.launch_every_s)));
  }
  detail::add_caveats(context, finding);
  finding.fixes.push_back(detail::one_launch_fix(context));
  return finding;
}

Evaluation evaluate_launch_bound(const Context& context, const Policy& policy) {
  if (context.on_cpu) {
    return Missing{"device time apart from host time (the device is a CPU)"};
  }
  if (const DeviceTimeline* timeline = detail::only_timeline(context)) {
    return by_timeline(context, *timeline, policy);
  }
  if (!context.signals.device_busy) {
    return Missing{"how busy the device is"};
  }
  if (!context.launching) {
    return Missing{context.no_steps};
  }
  if (*context.launching < policy.launch_share) {
    return context.keeps_up || units_wait(context, policy) ? unmeasured_gaps(context, policy) : Nothing{};
  }
  if (*context.launching < *context.input) {
    return Nothing{};
  }
  Finding finding = detail::of_share(*context.launching, policy);
  finding.where = detail::where_set(context, "compile.mode");
  finding.evidence = {
      context.say("the device is busy {} of the training, and neither input, copies nor host waits explain the rest",
                  format_share(*context.signals.device_busy)),
      context.say("the host is busy launching for {} of the wall time more than the device computes",
                  format_share(*context.launching)),
  };
  if (const auto& kernels = context.signals.kernels; kernels && kernels->launch_s) {
    finding.evidence.push_back(context.say("in the profiled steps a kernel takes {}, and the host {} to launch one",
                                           format_seconds(kernels->mean_s), format_seconds(*kernels->launch_s)));
  }
  if (!detail::effective_on(context, "compile.mode").value_or(false)) {
    finding.fixes.push_back(detail::one_launch_fix(context));
  }
  return finding;
}

}  // namespace

const Rule& launch_bound() {
  static const Rule kRule{
      .id = "launch-bound",
      .verdict = Verdict::kLaunchBound,
      .title = "Kernels are shorter than the time to launch them",
      .topic = "kernel launches",
      .explanation =
          "Every kernel costs the host some microseconds of Python and launch work. Where kernels are shorter than "
          "that, the device waits for the host between them: small batches, small layers, optimisers that update one "
          "tensor after the other. Larger batches, fused operations and graphs of the whole step help.",
      .thresholds =
          "From launch_share (20 %) of the wall time in which the device idles while the host neither waits for "
          "input, copies nor the device, and more than the wait for input. Below it a warning without a share, where "
          "the device keeps up with the host in half of the steps (mostly, 50 %) and nothing measured how long "
          "kernels run, or where that is not known and less than half (far_from_full, 50 %) of its multiprocessors "
          "have work. Silent where the device is behind the host in half of the steps, and where its multiprocessors "
          "have work for units_full (80 %) of the time. For a trace alone: idle time of the device while the host "
          "launches, from warning_share (10 %).",
      .needs = "how busy the device is, step times with their parts; better with SM activity",
      .proposes = "set compile.mode to reduce-overhead or graph, raise batch.size, or set optimizer.fused",
      .evaluate = evaluate_launch_bound,
      .counts = Counts::kHostTime,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
