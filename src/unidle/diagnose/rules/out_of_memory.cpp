#include <csignal>
#include <string_view>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

bool says_out_of_memory(std::string_view text) {
  for (const std::string_view words :
       {"CUDA out of memory", "OutOfMemoryError", "out of memory. Tried to allocate", "MemoryError",
        "DefaultCPUAllocator: can't allocate", "oom-kill", "Out Of Memory"}) {
    if (text.find(words) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

/// The kernel ends what exceeds its memory with SIGKILL and without a word.
bool was_killed(const Signals& signals) { return signals.exit_signal == SIGKILL || signals.exit_code == 128 + SIGKILL; }

/// A program may fail by itself when one of its helpers was killed.
bool killed_by_the_kernel(const Signals& signals) {
  return signals.oom_kills.value_or(0) > 0 && signals.outcome == Outcome::kFailed;
}

/// Where the kernel's count is not known.
bool killed_at_the_limit(const Signals& signals, const Policy& policy) {
  return was_killed(signals) && !signals.oom_kills && signals.host_memory_used.value_or(0) >= policy.memory_full;
}

bool is_missing(const Signals& signals) {
  const bool ended = signals.exit_code || signals.exit_signal || signals.outcome != Outcome::kUnknown;
  const bool nobody_knows = was_killed(signals) && !signals.oom_kills && !signals.host_memory_used;
  return nobody_knows || (!ended && !signals.gpu.ooms);
}

std::string evidence_of(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (killed_by_the_kernel(signals)) {
    return context.say("the kernel killed {} processes for want of memory while the run went on", *signals.oom_kills);
  }
  if (killed_at_the_limit(signals, policy)) {
    return context.say("the command was killed while its memory was {} full", format_share(*signals.host_memory_used));
  }
  return signals.gpu.ooms.value_or(0) > 0 ? context.say("the device ran out of memory {} times", *signals.gpu.ooms)
                                          : context.say("the program says that it ran out of memory");
}

Evaluation evaluate_out_of_memory(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const bool said = says_out_of_memory(signals.output_tail) || says_out_of_memory(signals.error_tail) ||
                    (signals.exception && says_out_of_memory(*signals.exception));
  const bool counted = signals.gpu.ooms.value_or(0) > 0;
  const bool killed = killed_by_the_kernel(signals) || killed_at_the_limit(signals, policy);
  if (!said && !counted && !killed) {
    return is_missing(signals) ? Evaluation(Missing{"how the run ended"}) : Evaluation(Nothing{});
  }
  const bool failed = signals.exit_code.value_or(0) != 0 || signals.exit_signal.value_or(0) != 0 ||
                      signals.outcome == Outcome::kFailed ||
                      (said && signals.exception && signals.steps_after_exception == 0);
  Finding finding;
  finding.severity = failed ? Severity::kCritical : Severity::kWarning;
  if (failed) {
    finding.verdict = Verdict::kFailed;
  }
  finding.where = detail::place(signals.exception_where);
  finding.evidence.push_back(evidence_of(context, policy));
  if (!failed) {
    finding.evidence.push_back(context.say("training went on after it"));
  }
  if (signals.batch_samples && *signals.batch_samples % 2 == 0) {
    const auto accumulation = detail::effective_int(context, "batch.accumulation").value_or(1);
    finding.fixes.push_back(detail::make_fix(context, "batch.size", *signals.batch_samples / 2,
                                             "smaller micro-batches; the effective batch stays what it was"));
    finding.fixes.push_back(
        detail::make_fix(context, "batch.accumulation", accumulation * 2, "more micro-batches to one optimiser step"));
  }
  return finding;
}

}  // namespace

const Rule& out_of_memory() {
  static const Rule kRule{
      .id = "out-of-memory",
      .verdict = Verdict::kUnknown,
      .title = "Memory ran out",
      .topic = "enough memory",
      .explanation =
          "The device or the host had no memory left. A program may catch that and go on with a smaller batch; "
          "mostly it ends the run. The kernel ends a process that exceeds the host's memory without a word.",
      .thresholds =
          "Critical when the run failed, a warning when training went on. A failed run counts when the kernel has "
          "killed "
          "processes of its group for want of memory meanwhile; where that is not known, a SIGKILL while host memory "
          "was at least memory_full (90 %) full.",
      .needs = "how the run ended, the end of its output, the program's own count",
      .proposes = "batch.size with batch.accumulation; grad.checkpointing",
      .evaluate = evaluate_out_of_memory,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
