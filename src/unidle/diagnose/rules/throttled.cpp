#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// True when somebody has set the power limit below the board's default.
bool limit_lowered(const GpuFacts& gpu) {
  constexpr double kLower = 0.95;
  return gpu.power_limit_w && gpu.power_default_limit_w && *gpu.power_limit_w < kLower * *gpu.power_default_limit_w;
}

Evaluation evaluate_throttled(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (context.on_cpu) {
    return Missing{"clock limits (the device is a CPU)"};
  }
  if (!signals.gpu.throttled) {
    return Missing{"why the device's clocks are held down"};
  }
  if (*signals.gpu.throttled < policy.throttled) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = signals.gpu.throttled_by_power_only ? Severity::kInfo : Severity::kWarning;
  finding.evidence.push_back(context.say("limits held the clocks down {} of the training ({})",
                                         format_share(*signals.gpu.throttled), signals.gpu.throttle_reasons));
  if (signals.gpu.throttled_by_power_only && !limit_lowered(signals.gpu)) {
    finding.evidence.push_back("that is the limit of the board as it was made: a full device runs at it");
    return finding;
  }
  const auto clock = signals.gpu.clock_mhz;
  const auto most = signals.gpu.clock_max_mhz;
  if (clock && most && *most > 0) {
    const double share =
        std::clamp(1 - *clock / *most, 0.0, 1.0) * signals.device_busy.value_or(1) * context.train.value_or(1);
    finding.share = share;
    finding.speedup_bound = amdahl(share);
    finding.severity =
        share < policy.throttle_share ? Severity::kInfo : std::max(Severity::kWarning, severity_of(share, policy));
    finding.evidence.push_back(
        context.say("the clock was {} MHz on average of {} MHz at most", format_number(*clock), format_number(*most)));
  }
  return finding;
}

}  // namespace

const Rule& throttled() {
  static const Rule kRule{
      .id = "throttled",
      .verdict = Verdict::kComputeBound,
      .title = "Thermal or power limits hold the clocks down",
      .topic = "clocks",
      .explanation =
          "A device that gets too hot or reaches its power limit lowers its clocks. Reaching the power limit under "
          "full load is normal for large cards; a hot card or a lowered limit costs more.",
      .thresholds =
          "From throttled (20 %) of the readings with such a reason; a hint when lower clocks cost less than "
          "throttle_share (5 %) of the wall time. Reaching the power limit is a hint without a share, unless the "
          "limit is below 95 % of the board's own.",
      .needs = "the driver's reasons for low clocks, clocks now and at most",
      .proposes = "look at the cooling, at dust and at the power limit (nvidia-smi -pl)",
      .evaluate = evaluate_throttled,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} is held below its clocks by heat or a power limit",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
