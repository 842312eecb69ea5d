#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// The factor by which the batch may grow: a power of two that stays below the memory target.
std::int64_t growth(double memory_used, const Policy& policy) {
  std::int64_t factor = 1;
  while (factor * 2 <= std::min<std::int64_t>(policy.max_batch_growth, 1 << 20) &&
         memory_used * static_cast<double>(factor * 2) <= policy.memory_target) {
    factor *= 2;
  }
  return factor;
}

Finding batch_finding(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.where = detail::where_set(context, "batch.size");
  finding.evidence = {
      signals.sm_activity ? context.say("device memory is {} full, and the multiprocessors have work {} of the time",
                                        format_share(*signals.gpu_memory_used), format_share(*signals.sm_activity))
                          : context.say("device memory is {} full and the device busy {} of the training",
                                        format_share(*signals.gpu_memory_used), format_share(*signals.device_busy)),
      context.say("{} of each step is waiting for input: the batch, not the loader, is what leaves it idle",
                  format_share(signals.step->input)),
      "how much faster a larger batch is was not measured",
  };
  const std::int64_t factor = growth(*signals.gpu_memory_used, policy);
  const auto accumulation = detail::effective_int(context, "batch.accumulation");
  const auto batch = signals.batch_samples;
  if (accumulation && *accumulation > 1) {
    // Exact divisors keep the effective batch size.
    std::int64_t divisor = std::min(factor, *accumulation);
    while (*accumulation % divisor != 0) {
      --divisor;
    }
    finding.fixes.push_back(detail::make_fix(context, "batch.size",
                                             batch ? std::optional<knobs::Value>(*batch * divisor) : std::nullopt,
                                             "larger micro-batches; the effective batch stays what it was"));
    finding.fixes.push_back(detail::make_fix(context, "batch.accumulation", *accumulation / divisor,
                                             "fewer micro-batches to one optimiser step"));
  } else {
    knobs::Change larger =
        detail::make_fix(context, "batch.size", batch ? std::optional<knobs::Value>(*batch * factor) : std::nullopt,
                         "try larger batches while samples/s rises; this changes what is trained");
    larger.knob_class = knobs::KnobClass::kSemantic;  // without accumulation the effective batch size changes
    finding.fixes.push_back(std::move(larger));
  }
  return finding;
}

Evaluation evaluate_batch_too_small(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.gpu_memory_used) {
    return Missing{context.on_cpu ? "device memory use (the device is a CPU)" : "device memory use"};
  }
  if (!signals.device_busy) {
    return Missing{context.say("how busy the device is")};
  }
  if (!context.input) {
    return Missing{context.no_steps};
  }
  const double busy = std::min(*signals.device_busy, context.units_in_use.value_or(1));
  const bool full = *signals.gpu_memory_used >= policy.far_from_full || busy >= policy.far_from_full;
  const double waits = signals.step->input + signals.step->transfer;
  if (full || waits >= policy.batch_max_wait || growth(*signals.gpu_memory_used, policy) < 2) {
    return Nothing{};
  }
  return batch_finding(context, policy);
}

}  // namespace

const Rule& batch_too_small() {
  static const Rule kRule{
      .id = "batch-too-small",
      .verdict = Verdict::kLaunchBound,
      .title = "The batch is too small for the device",
      .topic = "batch size",
      .explanation =
          "Each step costs the host a fixed time to launch its kernels. With a small batch the kernels are done "
          "sooner than the next ones are launched, and the device idles although nothing waits for data. One record "
          "does not show how much a larger batch gains; a measured search does.",
      .thresholds =
          "Device memory below far_from_full (50 %), and so is device time, or the part of the multiprocessors with "
          "work while kernels run (SM activity); input and transfer below batch_max_wait (20 % of the step). A "
          "warning; the share stays open.",
      .needs = "device memory use, how busy the device is, step times; better with SM activity",
      .proposes =
          "batch.size and, where gradients are accumulated, batch.accumulation by exact divisors, up to memory_target "
          "(80 %) and max_batch_growth (8x)",
      .evaluate = evaluate_batch_too_small,
      .counts = Counts::kOther,
      .sentence = "Your {device} gets batches that are too small to fill it",
      .shows = Symptom::kUseOfDevice,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
