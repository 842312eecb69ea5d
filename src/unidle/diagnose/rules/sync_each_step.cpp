#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.syncs_per_step) {
    return Missing{"how often the host waits for the device"};
  }
  if (*signals.syncs_per_step < policy.syncs_per_step) {
    return Nothing{};
  }
  if (!context.sync) {
    return Missing{context.no_steps};
  }
  double share = *context.sync;
  std::string loss = fmt::format("these waits take {} of the wall time", format_share(share));
  if (!context.on_cpu) {
    // A host that waits while the device computes loses nothing; only the device's idle time can be won back.
    if (!signals.device_busy) {
      return Missing{"how busy the device is"};
    }
    if (*signals.device_busy >= policy.device_full) {
      return Nothing{};
    }
    share = std::min(share, (1 - *signals.device_busy) * context.train.value_or(1));
    loss += fmt::format(", and the device is busy {} of the training", format_share(*signals.device_busy));
  }
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding;
  finding.share = share;
  finding.severity = severity_of(share, policy);
  finding.speedup_bound = amdahl(share);
  finding.where = detail::where_set(context, "metrics.interval");
  finding.evidence = {
      fmt::format("the host waits for the device {} times a step", format_number(*signals.syncs_per_step)),
      loss,
  };
  finding.fixes.push_back(detail::make_fix(context, "metrics.interval", 50, FixClass::kExact,
                                           "keep the loss on the device and read it every so many steps"));
  return finding;
}

}  // namespace

const Rule& sync_each_step() {
  static const Rule kRule{
      .id = "sync-each-step",
      .verdict = Verdict::kSyncBound,
      .title = "The host waits for the device in every step",
      .topic = "host waits",
      .explanation =
          "Reading the loss with .item(), copying a result with .cpu(), printing a tensor or checking for NaN makes "
          "the host "
          "wait until the device is done; then the device waits until the host has queued new work. On a CPU such a "
          "call "
          "costs nothing by itself, so only the time measured in it counts.",
      .thresholds =
          "From syncs_per_step (0.9) waits a step and warning_share (10 %) of the wall time; on a GPU no more than the "
          "time "
          "the device was idle, and nothing from device_full (90 % busy). Critical from critical_share (30 %).",
      .needs = "the number and time of waits in each step; on a GPU also how busy it is",
      .proposes = "metrics.interval",
      .evaluate = evaluate,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
