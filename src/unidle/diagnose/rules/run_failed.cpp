#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/output.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// How the process ended, if its exit alone shows a failure; empty otherwise.
std::string bad_end(const Context& context) {
  const Signals& signals = context.signals;
  if (signals.exit_signal.value_or(0) != 0) {
    return context.say("the command was ended by signal {} ({})", *signals.exit_signal,
                       ::strsignal(*signals.exit_signal));
  }
  if (signals.exit_code.value_or(0) != 0) {
    return context.say("the command ended with exit code {}", *signals.exit_code);
  }
  if (signals.outcome != Outcome::kFailed) {
    return "";
  }
  return signals.exception ? "an exception ended the observed part of the program" : "the run is marked as failed";
}

/// True when the printed failure is the last one that the instrumentation saw; Python prints its first line.
bool is_the_same(const PrintedFailure& printed, std::string_view seen) {
  seen = seen.substr(0, seen.find('\n'));
  return !seen.empty() && (printed.message.starts_with(seen) || seen.starts_with(printed.message));
}

/// The failure in the program's output, or the one that the instrumentation saw. The latter is preferred, because
/// output only gives hints.
std::optional<PrintedFailure> reported_failure(const Signals& signals) {
  auto printed = detail::printed_end(signals).failure;
  if (!signals.exception) {
    return printed;
  }
  const auto facts = logs::facts_of_message(*signals.exception);
  PrintedFailure seen{*signals.exception, detail::place(signals.exception_where), false, facts};
  if (!signals.steps_after_exception) {
    return printed ? printed : seen;
  }
  seen.went_on = *signals.steps_after_exception > 0;
  if (printed && is_the_same(*printed, seen.message)) {
    printed->went_on = seen.went_on;
    printed->where = seen.where ? seen.where : printed->where;  // also within another process
    if (seen.message.starts_with(printed->message) && seen.message.find('\n') == std::string::npos) {
      printed->message = seen.message;  // with its cause
    }
    return printed;
  }
  if (printed && seen.went_on) {
    return printed;  // raised where the instrumentation cannot see it
  }
  // A failure caused by the end of another process explains less than the cause of that end.
  const bool consequence = printed && !printed->went_on && printed->facts.blame < facts.blame;
  return consequence ? printed : seen;
}

/// The meaning of the signal that ended a process.
std::string_view meaning_of(int signal) {
  switch (signal) {
    case SIGKILL: return "the kernel sends that signal when memory runs out, a scheduler at its limits";
    case SIGSEGV: return "native code accessed invalid memory: a bug in an extension, or libraries that do not match";
    case SIGBUS: return "most often shared memory (/dev/shm) is too small for the batches of the loader's workers";
    default: return "";
  }
}

/// Adds the signal that ended a process; a known lack of memory has a rule of its own.
void add_signal(const Context& context, const logs::FailureFacts& facts, Finding& finding) {
  if (facts.signal == 0 || facts.speaker == logs::Speaker::kScheduler || facts.speaker == logs::Speaker::kKernel) {
    return;
  }
  const char* name = ::strsignal(facts.signal);
  finding.evidence.push_back(
      facts.rank ? context.say("rank {} failed first, ended by signal {} ({})", *facts.rank, facts.signal, name)
                 : context.say("a process was ended by signal {} ({})", facts.signal, name));
  if (const std::string_view meaning = meaning_of(facts.signal); !meaning.empty()) {
    finding.evidence.emplace_back(meaning);
  }
}

void add_failure(const Context& context, const PrintedFailure& failure, Finding& finding) {
  const logs::FailureFacts& facts = failure.facts;
  const std::size_t before = finding.evidence.size();
  if (facts.timeout_s) {
    finding.evidence.push_back(context.say("a collective operation timed out after {}: not every rank joined it",
                                           format_seconds(*facts.timeout_s)));
  }
  add_signal(context, facts, finding);
  finding.failure = finding.evidence.size() > before ? finding.evidence[before] : failure.message;
  finding.evidence.push_back(context.say("it said: {}", failure.message));
  if (facts.rank && facts.signal == 0) {
    finding.evidence.push_back(context.say("rank {} failed first", *facts.rank));
  }
  finding.where = failure.where;
}

Evaluation evaluate_run_failed(const Context& context, const Policy&) {
  const Signals& signals = context.signals;
  if (signals.outcome == Outcome::kStopped) {
    return Nothing{};  // on request
  }
  const std::string end = bad_end(context);
  const auto failure = reported_failure(signals);
  const bool ended = signals.exit_code || signals.exit_signal || signals.outcome != Outcome::kUnknown;
  if (end.empty() && !failure) {
    if (auto hint = detail::earlier_attempt(context, false)) {
      return *std::move(hint);
    }
    return ended ? Evaluation(Nothing{}) : Evaluation(Missing{context.say("how the run ended")});
  }
  Finding finding;
  finding.severity = Severity::kCritical;
  // An error of a thread, or one that the program handles, does not end a run whose exit code is 0.
  const bool handled = end.empty() && signals.exit_code && failure->facts.hint;
  const bool went_on = end.empty() && failure->went_on;
  if (!end.empty()) {
    finding.evidence.push_back(end);
  } else if (!signals.exit_code && !went_on) {
    finding.evidence.push_back(context.say("its exit code is not known"));
  }
  if (failure) {
    add_failure(context, *failure, finding);
    finding.proposes = "fix this error";
  } else {
    finding.failure =
        signals.failure_evidence.empty() ? translate(context.language, end) : signals.failure_evidence.front();
  }
  if (signals.earlier_exceptions > 0) {
    finding.evidence.push_back(context.say("{} other errors came before it", signals.earlier_exceptions));
  }
  if (went_on || handled) {
    finding.severity = Severity::kInfo;
  }
  if (went_on) {
    finding.evidence.push_back("training went on after it");
  } else if (end.empty() && signals.exit_code) {
    finding.evidence.push_back("the exit code is 0 all the same");
  }
  return finding;
}

}  // namespace

const Rule& run_failed() {
  static const Rule kRule{
      .id = "run-failed",
      .verdict = Verdict::kFailed,
      .title = "The run failed",
      .topic = "how it ended",
      .explanation =
          "A traceback, a signal or a non-zero exit code means that the run failed, whatever its last line claims. A "
          "program that catches its own exception and exits with 0 failed as well, unless its training went on "
          "afterwards: then the traceback is a hint, as is that of a thread when the exit code is 0. Of several errors "
          "of "
          "one process the last one counts. Of several "
          "processes the one that failed first counts, because the others failed with it. When the scheduler ended an "
          "attempt of a job, and training went on in a later attempt, that is a hint.",
      .thresholds =
          "None. Training went on when steps began after the exception or, where that was not seen, when progress "
          "lines (epoch, step, it/s) follow the traceback in the output.",
      .needs = "how the run ended, or the end of its output",
      .proposes = "fix the error that is quoted; where none is quoted, read the end of the output",
      .evaluate = evaluate_run_failed,
      .counts = Counts::kOther,
      .leads = 1,
      .hint_title = "An error after which training went on",
      .shows = Symptom::kFailure,
      .told = &Signals::failure_evidence,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
