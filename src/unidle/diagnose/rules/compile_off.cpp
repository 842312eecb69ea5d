#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_compile_off(const Context& context, const Policy& policy) {
  auto compiled = detail::effective_on(context, "compile.mode");
  if (context.signals.compile && context.signals.compile->compiled) {
    compiled = true;
  }
  if (!compiled && context.signals.compile) {
    compiled = false;
  }
  if (!compiled) {
    return Missing{"whether the step is compiled (effective compile.mode)"};
  }
  if (*compiled) {
    return Nothing{};
  }
  if (context.on_cpu) {
    return Missing{"device time apart from host time (the device is a CPU)"};
  }
  if (!context.launching) {
    return Missing{context.signals.device_busy ? context.no_steps : "how busy the device is"};
  }
  if (*context.launching < policy.launch_share || *context.launching < *context.input) {
    return Nothing{};
  }
  Finding finding = detail::of_share(*context.launching, policy);
  finding.severity = Severity::kWarning;  // how much a compiler wins back is not known before trying
  finding.where = detail::where_set(context, "compile.mode");
  if (!finding.where) {
    finding.where = detail::place(context.signals.model_where);
  }
  finding.evidence = {
      context.say("the step runs operation by operation, and the host's launching leaves the device idle for {} of the "
                  "wall time",
                  format_share(*context.launching)),
  };
  if (const auto& kernels = context.signals.kernels; kernels && kernels->launch_s) {
    finding.evidence.push_back(context.say("in the profiled steps a kernel takes {}, and the host {} to launch one",
                                           format_seconds(kernels->mean_s), format_seconds(*kernels->launch_s)));
  }
  finding.fixes.push_back(detail::one_launch_fix(context));
  return finding;
}

}  // namespace

const Rule& compile_off() {
  static const Rule kRule{
      .id = "compile-off",
      .verdict = Verdict::kLaunchBound,
      .title = "The step is neither compiled nor captured as a graph",
      .topic = "compilation",
      .explanation =
          "torch.compile merges small operations into fewer kernels, and a CUDA graph launches the whole step at "
          "once. Both matter where launching, not computing, takes the time.",
      .thresholds =
          "From launch_share (20 %) of the wall time in which the device waits for launches, and silent where it is "
          "behind the host. A warning at most.",
      .needs = "the effective compile.mode, how busy the device is, step times with their parts",
      .proposes = "compile.mode",
      .evaluate = evaluate_compile_off,
      .counts = Counts::kHostTime,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
