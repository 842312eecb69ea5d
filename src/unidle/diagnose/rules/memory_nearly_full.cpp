#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_memory_nearly_full(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const auto used = context.on_gpu ? signals.gpu_memory_used : signals.host_memory_used;
  if (!used) {
    return Missing{context.on_gpu ? "device memory use" : "host memory use and its limit"};
  }
  if (*used < policy.memory_full) {
    return Nothing{};
  }
  Finding finding;  // a hint: nothing is lost yet
  finding.evidence.push_back(context.on_gpu ? context.say("device memory is at most {} full", format_share(*used))
                                            : context.say("host memory is at most {} full", format_share(*used)));
  return finding;
}

}  // namespace

const Rule& memory_nearly_full() {
  static const Rule kRule{
      .id = "memory-nearly-full",
      .verdict = Verdict::kUnknown,
      .title = "Memory is nearly full",
      .topic = "memory",
      .explanation =
          "Nothing is lost as long as it fits. The next longer sequence or larger picture may not, and an allocator "
          "that is short of memory flushes its cache.",
      .thresholds = "A hint from memory_full (90 %), where the engine proposes a smaller batch too.",
      .needs = "device memory use; on a CPU the memory of the command and its limit",
      .proposes = "lower batch.size and raise batch.accumulation, or use grad.checkpointing",
      .evaluate = evaluate_memory_nearly_full,
      .counts = Counts::kOther,
      .shows = Symptom::kFullMemory,
      .about_memory = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
