#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// Waits per step and their share of all waits, without explicit synchronisation, which has its own rule.
std::optional<detail::WaitFacts> reads(const Signals& signals) {
  if (auto facts = detail::waits_of(signals, detail::Waits::kReads)) {
    return facts;
  }
  if (!signals.syncs_per_step) {
    return std::nullopt;
  }
  detail::WaitFacts facts;
  facts.per_step = *signals.syncs_per_step;
  return facts;
}

Finding wait_finding(const Context& context, const Policy& policy, const detail::WaitFacts& waits, double share) {
  Finding finding = detail::of_share(share, policy);
  finding.where =
      waits.top != nullptr ? detail::place(waits.top->where) : detail::where_set(context, "metrics.interval");
  finding.evidence.push_back(
      context.say("the host waits for the device {} times a step", format_number(waits.per_step)));
  if (waits.top != nullptr) {
    finding.evidence.push_back(
        context.say("most often in {} ({}), {} times in all", waits.top->call, waits.top->where, waits.top->in_step));
  }
  finding.evidence.push_back(
      context.say("these waits take {} of the wall time", format_share(*context.sync * waits.of_all)));
  if (!context.on_cpu) {
    finding.evidence.push_back(
        context.say("the device is busy {} of the training", format_share(*context.signals.device_busy)));
  }
  finding.fixes.push_back(detail::make_fix(context, "metrics.interval", policy.metrics_interval,
                                           "keep the loss on the device and read it every so many steps"));
  return finding;
}

/// The trace itself shows what waiting costs, even with few steps.
Evaluation waits_by_timeline(const Context& context, const DeviceTimeline& timeline, const Policy& policy) {
  if (timeline.sync < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_idle(context, policy, timeline.sync);
  finding.evidence.emplace_back(
      "the host waited for the device with nothing queued behind: the device idles until the host launches again");
  if (context.signals.syncs_per_step) {
    finding.evidence.push_back(
        context.say("the host waits for the device {} times a step", format_number(*context.signals.syncs_per_step)));
  }
  finding.fixes.push_back(detail::make_fix(context, "metrics.interval", policy.metrics_interval,
                                           "keep the loss on the device and read it every so many steps"));
  return finding;
}

Evaluation evaluate_sync_each_step(const Context& context, const Policy& policy) {
  if (const DeviceTimeline* timeline = detail::only_timeline(context)) {
    return waits_by_timeline(context, *timeline, policy);
  }
  const auto waits = reads(context.signals);
  if (!waits) {
    return Missing{"how often the host waits for the device"};
  }
  if (waits->per_step < policy.syncs_per_step) {
    return Nothing{};
  }
  if (!context.sync) {
    return Missing{context.no_steps};
  }
  const auto share = detail::lost_by_waiting(context, *context.sync * waits->of_all);
  if (!share) {
    return Missing{"how busy the device is"};
  }
  const bool full = !context.on_cpu && *context.signals.device_busy >= policy.device_full;
  if (full || *share < policy.warning_share) {
    return Nothing{};
  }
  return wait_finding(context, policy, *waits, *share);
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
          "the host wait until the device is done; then the device waits until the host has queued new work. On a CPU "
          "such a call costs nothing by itself, so only the time measured in it counts.",
      .thresholds =
          "From syncs_per_step (0.9) waits a step and warning_share (10 %) of the wall time; on a GPU no more than "
          "the time the device was idle, and nothing from device_full (90 % busy). Critical from critical_share (30 "
          "%).",
      .needs = "the number and time of waits in each step; on a GPU also how busy it is",
      .proposes = "metrics.interval",
      .evaluate = evaluate_sync_each_step,
      .counts = Counts::kHostTime,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
