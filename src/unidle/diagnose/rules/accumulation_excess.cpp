#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

struct Memory {
  double used = 0;  // 0..1
  std::string what;
};

std::optional<Memory> memory_of(const Context& context) {
  const Signals& signals = context.signals;
  if (context.on_cpu && signals.host_memory_used) {
    return Memory{*signals.host_memory_used,
                  context.say("host memory is at most {} full", format_share(*signals.host_memory_used))};
  }
  if (!context.on_cpu && signals.gpu_memory_used) {
    return Memory{*signals.gpu_memory_used,
                  context.say("device memory is at most {} full", format_share(*signals.gpu_memory_used))};
  }
  return std::nullopt;
}

/// The largest divisor of the accumulation whose micro-batches stay below the target.
std::int64_t divisor_of(std::int64_t accumulation, double used, const Policy& policy) {
  // A policy may have any value, so all divisors are tried.
  for (std::int64_t divisor = std::min(accumulation, std::min<std::int64_t>(policy.max_batch_growth, 1 << 20));
       divisor > 1; --divisor) {
    if (accumulation % divisor == 0 && used * static_cast<double>(divisor) <= policy.memory_target) {
      return divisor;
    }
  }
  return 1;
}

/// Whether a micro-batch costs little more than the calls of its operations: then a larger one hardly costs more.
bool pays_for_calls(const Context& context, const Policy& policy) {
  const auto& operations = context.signals.operations;
  return context.on_cpu && operations && operations->seconds_each <= policy.small_operation_s;
}

Evaluation evaluate_accumulation_excess(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  auto accumulation = detail::effective_int(context, "batch.accumulation");
  if (!accumulation && signals.micro_batches) {
    accumulation = std::llround(*signals.micro_batches);
  }
  if (!accumulation) {
    return Missing{"how many micro-batches make one step"};
  }
  if (*accumulation < 2) {
    return Nothing{};
  }
  const auto memory = memory_of(context);
  if (!memory) {
    return Missing{"memory use"};
  }
  if (!context.compute) {
    return Missing{context.no_steps};
  }
  const std::int64_t divisor = divisor_of(*accumulation, memory->used, policy);
  const bool calls = pays_for_calls(context, policy);
  const bool busy = signals.device_busy.value_or(0) >= policy.device_full && !calls;
  if (divisor < 2 || busy || *context.compute < policy.warning_share) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = context.on_cpu && !calls ? Severity::kInfo : Severity::kWarning;
  if (context.on_cpu) {
    finding.verdict = calls ? Verdict::kOverheadBound : Verdict::kComputeBound;
  }
  finding.where = detail::where_set(context, "batch.accumulation");
  finding.evidence = {
      signals.batch_samples
          ? context.say("{} micro-batches of {} samples make one step", *accumulation, *signals.batch_samples)
          : context.say("{} micro-batches make one step", *accumulation),
      memory->what,
      context.say("how much faster larger micro-batches are was not measured"),
  };
  if (calls) {
    finding.evidence.push_back(context.say("a forward pass makes {:.0f} operations of torch, which take {} on average",
                                           signals.operations->per_pass,
                                           format_seconds(signals.operations->seconds_each)));
  }
  if (signals.batch_samples) {
    finding.fixes.push_back(detail::make_fix(context, "batch.size", *signals.batch_samples * divisor,
                                             "larger micro-batches; the effective batch stays what it was"));
  }
  finding.fixes.push_back(detail::make_fix(context, "batch.accumulation", *accumulation / divisor,
                                           "fewer micro-batches to one optimiser step"));
  return finding;
}

}  // namespace

const Rule& accumulation_excess() {
  static const Rule kRule{
      .id = "accumulation-excess",
      .verdict = Verdict::kLaunchBound,
      .title = "Micro-batches are smaller than memory allows",
      .topic = "accumulation",
      .explanation =
          "Gradients are accumulated over micro-batches because a whole batch does not fit. Where it would fit, many "
          "small micro-batches only pay the fixed cost of a forward and backward pass more often.",
      .thresholds =
          "At least two micro-batches, of which an exact divisor fits below memory_target (80 %); not on a device that "
          "is at least device_full (90 %) busy. A warning; on a CPU a hint, because few samples fill its vector units "
          "and larger batches may have more padding, unless the operations of a forward pass take at most "
          "small_operation_s (50 us) on average: that is little more than their calls, and counts however busy the "
          "CPU is.",
      .needs = "batch.accumulation in effect, memory use, step times",
      .proposes = "batch.size and batch.accumulation by exact divisors",
      .evaluate = evaluate_accumulation_excess,
      .counts = Counts::kOther,
      .sentence = "Your {device} works on micro-batches that are smaller than its memory allows",
      .shows = Symptom::kUseOfDevice,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
