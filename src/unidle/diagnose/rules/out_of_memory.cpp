#include <csignal>
#include <optional>
#include <string>
#include <utility>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/output.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// A lack of memory that was printed, or seen by the instrumentation.
std::optional<PrintedFailure> reported_lack(const Signals& signals) {
  auto printed = detail::printed_end(signals).memory;
  if (!printed && signals.exception) {
    const auto facts = logs::facts_of_message(*signals.exception);
    if (facts.lack != logs::Lack::kNone) {
      printed = PrintedFailure{*signals.exception, detail::place(signals.exception_where),
                               signals.steps_after_exception.value_or(1) > 0, facts};
    }
  }
  return printed;
}

/// The kernel kills a process that exceeds its memory with SIGKILL, without a message.
bool was_killed(const Signals& signals) {
  const auto& printed = signals.printed ? signals.printed->failure : std::nullopt;
  return signals.exit_signal == SIGKILL || signals.exit_code == 128 + SIGKILL ||
         (printed && !printed->went_on && printed->facts.signal == SIGKILL);
}

/// A program may also fail by itself after one of its helpers was killed.
bool killed_by_the_kernel(const Signals& signals) {
  return signals.oom_kills.value_or(0) > 0 && signals.outcome == Outcome::kFailed;
}

/// For runs without the kernel's count of kills.
bool killed_at_the_limit(const Signals& signals, const Policy& policy) {
  return was_killed(signals) && !signals.oom_kills && signals.host_memory_used.value_or(0) >= policy.memory_full;
}

bool is_missing(const Signals& signals) {
  const bool ended = signals.exit_code || signals.exit_signal || signals.outcome != Outcome::kUnknown;
  const bool nobody_knows = was_killed(signals) && !signals.oom_kills && !signals.host_memory_used;
  return nobody_knows || (!ended && !signals.gpu.ooms);
}

std::string told_by(const Context& context, const logs::FailureFacts& facts) {
  if (facts.lack == logs::Lack::kSharedMemory) {
    return context.say("shared memory (/dev/shm) ran out");
  }
  if (facts.speaker == logs::Speaker::kScheduler) {
    return context.say("the scheduler ended the job for using too much memory");
  }
  if (facts.speaker == logs::Speaker::kKernel) {
    return context.say("the kernel killed a process because memory ran out");
  }
  return facts.lack == logs::Lack::kHostMemory ? context.say("the program says that the host ran out of memory")
                                               : context.say("the program says that it ran out of memory");
}

std::string evidence_of(const Context& context, const Policy& policy, const std::optional<PrintedFailure>& told) {
  const Signals& signals = context.signals;
  if (killed_by_the_kernel(signals)) {
    return context.say("the kernel killed {} process(es) for lack of memory while the run went on", *signals.oom_kills);
  }
  if (killed_at_the_limit(signals, policy)) {
    return context.say("the command was killed while its memory was {} full", format_share(*signals.host_memory_used));
  }
  const std::int64_t counted = signals.gpu.ooms.value_or(0);
  if (told && (counted == 0 || told->facts.lack != logs::Lack::kDeviceMemory)) {
    return told_by(context, told->facts);
  }
  return context.say("memory ran out {} times", counted);
}

/// True when the program went on with smaller batches than the one that did not fit.
bool went_on_smaller(const Signals& signals) {
  return signals.gpu.oom_samples && signals.batch_samples && *signals.batch_samples < *signals.gpu.oom_samples;
}

std::string what_came_after(const Context& context) {
  const Signals& signals = context.signals;
  if (signals.gpu.oom_steps_before && signals.steps && *signals.steps <= *signals.gpu.oom_steps_before) {
    return context.say("no step was trained after it");
  }
  return went_on_smaller(signals)
             ? context.say("batches of {} samples did not fit into memory; training went on with {}",
                           *signals.gpu.oom_samples, *signals.batch_samples)
             : context.say("training went on after it");
}

void add_smaller_batch(const Context& context, bool failed, Finding& finding) {
  const Signals& signals = context.signals;
  if (!failed && went_on_smaller(signals)) {
    knobs::Change fix = detail::make_fix(context, "batch.size", *signals.batch_samples,
                                         "start with the size that fits: each failed attempt takes time");
    fix.from = *signals.gpu.oom_samples;
    finding.fixes.push_back(std::move(fix));
  } else if (signals.batch_samples && *signals.batch_samples % 2 == 0) {
    const auto accumulation = detail::effective_int(context, "batch.accumulation").value_or(1);
    finding.fixes.push_back(detail::make_fix(context, "batch.size", *signals.batch_samples / 2,
                                             "smaller micro-batches; the effective batch stays what it was"));
    finding.fixes.push_back(
        detail::make_fix(context, "batch.accumulation", accumulation * 2, "more micro-batches to one optimiser step"));
  }
}

Evaluation evaluate_out_of_memory(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const auto told = reported_lack(signals);
  const bool counted = signals.gpu.ooms.value_or(0) > 0;
  const bool killed = killed_by_the_kernel(signals) || killed_at_the_limit(signals, policy);
  if (!told && !counted && !killed) {
    return is_missing(signals) ? Evaluation(Missing{"how the run ended"}) : Evaluation(Nothing{});
  }
  const bool failed = signals.exit_code.value_or(0) != 0 || signals.exit_signal.value_or(0) != 0 ||
                      signals.outcome == Outcome::kFailed ||
                      (told && !told->went_on && signals.outcome != Outcome::kCompleted);
  Finding finding;
  finding.severity = failed ? Severity::kCritical : Severity::kWarning;
  if (failed) {
    finding.verdict = Verdict::kFailed;
  }
  finding.where = told && told->where ? told->where : detail::place(signals.exception_where);
  finding.evidence.push_back(evidence_of(context, policy, told));
  if (told && !killed) {
    finding.evidence.push_back(context.say("it said: {}", told->message));
  }
  if (!failed) {
    finding.evidence.push_back(what_came_after(context));
  }
  const bool of_the_host = killed || (told && told->facts.lack != logs::Lack::kDeviceMemory);
  if (!of_the_host) {
    add_smaller_batch(context, failed, finding);
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
          "The device or the host had no memory left. A program may catch that and go on with a smaller batch; mostly "
          "it ends the run. The kernel ends a process that exceeds the host's memory without a word.",
      .thresholds =
          "Critical when the run failed, a warning when training went on. A failed run counts when the kernel has "
          "killed processes of its group for lack of memory meanwhile; where that is not known, a SIGKILL while host "
          "memory was at least memory_full (90 %) full.",
      .needs = "how the run ended, the end of its output, the program's own count",
      .proposes =
          "for device memory batch.size with batch.accumulation, or grad.checkpointing; for host memory more memory "
          "for the job, or fewer loader.workers; for shared memory a larger /dev/shm",
      .evaluate = evaluate_out_of_memory,
      .counts = Counts::kOther,
      .leads = 3,
      .explains = {Symptom::kFullMemory},
      .about_memory = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
