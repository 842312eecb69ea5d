#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_debugging_left_on(const Context& context, const Policy& policy) {
  const auto& debugging = context.signals.debugging;
  if (!debugging) {
    return Missing{"which debugging aids of torch are on"};
  }
  const bool blocks = debugging->launch_blocking && context.on_gpu;
  const bool checks = debugging->checked_collectives && context.signals.parallel == "ddp";
  if (!debugging->anomaly && !debugging->profiler && !blocks && !checks) {
    return Nothing{};
  }
  if (!context.train || !context.compute) {
    return Missing{context.no_steps};
  }
  const double share = *context.compute;
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = share < policy.critical_share ? Severity::kWarning : Severity::kCritical;
  if (debugging->anomaly) {
    finding.where = detail::place(debugging->where);
    finding.evidence.emplace_back(
        "anomaly detection is on: autograd keeps a traceback of each operation and checks each gradient for NaN");
  }
  if (debugging->profiler) {
    finding.evidence.emplace_back("torch's profiler is on from the first step to the last: it times each operation");
  }
  if (blocks) {
    finding.evidence.emplace_back("CUDA_LAUNCH_BLOCKING is set: the host waits for each kernel before the next one");
  }
  if (checks) {
    finding.evidence.emplace_back(
        "TORCH_DISTRIBUTED_DEBUG is DETAIL: the ranks compare the shapes of what they exchange each time");
  }
  finding.evidence.push_back(
      context.say("forward and backward take {} of the wall time; the part of the debugging aids was not measured",
                  format_share(share)));
  return finding;
}

}  // namespace

const Rule& debugging_left_on() {
  static const Rule kRule{
      .id = "debugging-left-on",
      .verdict = Verdict::kComputeBound,
      .title = "Debugging aids are on while the program trains",
      .topic = "debugging aids",
      .explanation =
          "torch.autograd.set_detect_anomaly(True), detect_anomaly() and Lightning's detect_anomaly=True keep a "
          "traceback of each forward operation and check each gradient; small models train several times slower. "
          "CUDA_LAUNCH_BLOCKING=1 makes the host wait for each kernel, so that the GPU idles between two of them. With "
          "TORCH_DISTRIBUTED_DEBUG=DETAIL the ranks compare each exchange before they make it. A profiler without a "
          "schedule times each operation of the whole run, and works on its events for a long time afterwards. torch's "
          "documentation recommends these for debugging only.",
      .thresholds =
          "From warning_share (10 %) of the wall time in the forward and backward pass; critical from critical_share "
          "(30 %). The program's own profiler counts if it is on whenever the shim looks: in the first three passes "
          "and in "
          "each 16th. Without a share: what the aid itself takes was not measured.",
      .needs = "which debugging aids of torch are on while it trains, step times",
      .proposes = "switch it off once the error is found",
      .evaluate = evaluate_debugging_left_on,
      .counts = Counts::kHostTime,
      .sentence = "Your run trains with debugging aids switched on, which slow each step down",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
