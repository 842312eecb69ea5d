#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/output.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// How the process ended, when that says failure by itself; empty otherwise.
std::string bad_end(const Context& context) {
  const Signals& signals = context.signals;
  if (signals.exit_signal.value_or(0) != 0) {
    return context.say("the command was ended by signal {} ({})", *signals.exit_signal,
                       ::strsignal(*signals.exit_signal));
  }
  if (signals.exit_code.value_or(0) != 0) {
    return context.say("the command ended with exit code {}", *signals.exit_code);
  }
  return signals.outcome == Outcome::kFailed ? "the run is marked as failed" : "";
}

/// In the output: of either stream the last one, and of these the one that nothing went on after.
std::optional<detail::OutputFailure> printed_failure(const Signals& signals) {
  auto failure = detail::find_failure(signals.error_tail);
  if (!failure || failure->went_on) {
    if (auto other = detail::find_failure(signals.output_tail); other && (!failure || !other->went_on)) {
      failure = std::move(other);
    }
  }
  return failure;
}

/// True when the printed failure is the last one that the instrumentation saw: Python prints its first line.
bool is_the_same(const detail::OutputFailure& printed, std::string_view seen) {
  seen = seen.substr(0, seen.find('\n'));
  return !seen.empty() && (printed.message.starts_with(seen) || seen.starts_with(printed.message));
}

/// What the program said about it: in its output, or to the instrumentation. Of several failures the last one counts,
/// and where that is not known the one that nothing went on after. What was measured goes before what the output hints
/// at.
std::optional<detail::OutputFailure> told_failure(const Signals& signals) {
  auto printed = printed_failure(signals);
  if (!signals.exception || !signals.steps_after_exception) {
    return printed || !signals.exception ? printed
                                         : std::optional(detail::OutputFailure{
                                               *signals.exception, detail::place(signals.exception_where), false});
  }
  const bool went_on = *signals.steps_after_exception > 0;
  if (printed && is_the_same(*printed, *signals.exception)) {
    printed->went_on = went_on;
    return printed;
  }
  if (printed && went_on) {
    return printed;  // by another way than the instrumentation sees
  }
  return detail::OutputFailure{*signals.exception, detail::place(signals.exception_where), went_on};
}

/// The process whose end the others only noticed; nothing where one tells of a failure of its own.
std::optional<detail::KilledRank> killed_rank(const Signals& signals,
                                              const std::optional<detail::OutputFailure>& failure) {
  if (failure && detail::blame_of(failure->message) == detail::Blame::kOwn) {
    return std::nullopt;
  }
  const auto killed = detail::killed_rank(signals.error_tail);
  return killed ? killed : detail::killed_rank(signals.output_tail);
}

Evaluation evaluate_run_failed(const Context& context, const Policy&) {
  const Signals& signals = context.signals;
  if (signals.outcome == Outcome::kStopped) {
    return Nothing{};  // on request
  }
  const std::string end = bad_end(context);
  const auto failure = told_failure(signals);
  const bool ended = signals.exit_code || signals.exit_signal || signals.outcome != Outcome::kUnknown;
  if (end.empty() && !failure) {
    return ended ? Evaluation(Nothing{}) : Evaluation(Missing{context.say("how the run ended")});
  }
  Finding finding;
  finding.severity = Severity::kCritical;
  const bool went_on = end.empty() && failure->went_on;
  if (!end.empty()) {
    finding.evidence.push_back(end);
  } else if (!signals.exit_code && !went_on) {
    finding.evidence.push_back(context.say("its exit code is not known"));
  }
  if (const auto killed = killed_rank(signals, failure)) {
    finding.evidence.push_back(context.say("first of its processes, rank {} was ended by signal {} ({})", killed->rank,
                                           killed->signal, ::strsignal(killed->signal)));
    if (killed->signal == SIGKILL) {
      finding.evidence.push_back("the kernel sends that signal when memory runs out, a scheduler at its limits");
    }
  } else if (failure) {
    finding.evidence.push_back(context.say("it said: {}", failure->message));
    finding.where = failure->where;
  }
  if (signals.earlier_exceptions > 0) {
    finding.evidence.push_back(context.say("{} other errors came before it", signals.earlier_exceptions));
  }
  if (went_on) {
    finding.severity = Severity::kInfo;
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
      .topic = "outcome",
      .explanation =
          "A traceback, a signal or a non-zero exit code means that the run failed, whatever its last line claims. A "
          "program that "
          "catches its own exception and exits with 0 failed as well, unless its training went on afterwards: then the "
          "traceback is a hint. Of several errors the last one counts.",
      .thresholds =
          "None. Training went on when steps began after the exception or, where that was not seen, when progress "
          "lines (epoch, "
          "step, it/s) follow the traceback in the output.",
      .needs = "how the run ended, or the end of its output",
      .proposes = "mend the error that it quotes; where it quotes none, read the end of its output",
      .evaluate = evaluate_run_failed,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
