#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_allocator_retries(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (context.on_cpu) {
    return Missing{"the device allocator (the device is a CPU)"};
  }
  if (!signals.gpu.alloc_retries) {
    return Missing{"retries of the device allocator"};
  }
  if (*signals.gpu.alloc_retries < 1) {
    return Nothing{};
  }
  Finding finding;
  const double per_step = signals.steps.value_or(0) > 0
                              ? static_cast<double>(*signals.gpu.alloc_retries) / static_cast<double>(*signals.steps)
                              : 1;
  finding.severity = per_step >= policy.retries_per_step ? Severity::kWarning : Severity::kInfo;
  finding.evidence.push_back(
      context.say("the allocator gave its cache back and asked again {} times", *signals.gpu.alloc_retries));
  if (signals.gpu_memory_used) {
    finding.evidence.push_back(context.say("device memory is at most {} full", format_share(*signals.gpu_memory_used)));
  }
  const auto accumulation = detail::effective_int(context, "batch.accumulation");
  if (signals.batch_samples && *signals.batch_samples % 2 == 0) {
    finding.fixes.push_back(detail::make_fix(context, "batch.size", *signals.batch_samples / 2,
                                             "smaller micro-batches; the effective batch stays what it was"));
    finding.fixes.push_back(detail::make_fix(context, "batch.accumulation", accumulation.value_or(1) * 2,
                                             "more micro-batches to one optimiser step"));
  }
  return finding;
}

}  // namespace

const Rule& allocator_retries() {
  static const Rule kRule{
      .id = "allocator-retries",
      .verdict = Verdict::kComputeBound,
      .title = "The device allocator ran short and tried again",
      .topic = "allocator",
      .explanation =
          "When an allocation does not fit, PyTorch's allocator waits for the device, gives all cached blocks back to "
          "the driver and tries again. That stalls the step, and the cache has to be filled anew.",
      .thresholds = "Any retry is a hint; a warning from retries_per_step (0.01).",
      .needs = "the retries that the allocator counts",
      .proposes = "lower batch.size and raise batch.accumulation, or use grad.checkpointing or expandable_segments",
      .evaluate = evaluate_allocator_retries,
      .counts = Counts::kOther,
      .sentence = "Your {device} runs short of memory, and its allocator has to try again",
      .explains = {Symptom::kFullMemory},
      .about_memory = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
