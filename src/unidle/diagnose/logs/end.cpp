// How a run ended, by its logs.
#include <algorithm>

#include "unidle/diagnose/logs/job_logs.h"

namespace unidle::diagnose::detail {

namespace {

using unidle::logs::LogEnd;
using unidle::logs::Quote;
using unidle::logs::TextLog;

/// So many losses in a row that are all nan or infinite do not come back.
constexpr std::int64_t kHopelessLines = 3;

struct Failure {
  const TextLog* log = nullptr;
  Quote quote;
  std::string message;
  bool is_traceback = false;
  std::int64_t progress_after = 0;
};

/// The line that names the exception: the last one of the text.
std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  const std::size_t begin = text.rfind('\n');
  return std::string(begin == std::string_view::npos ? text : text.substr(begin + 1));
}

Failure failure_of(const TextLog& log, const Quote& quote, std::string message) {
  return {&log, quote, std::move(message), false, log.progress_lines - quote.progress_before};
}

void add_losses(const TextLog& log, Language language, std::vector<Failure>& failures) {
  if (log.hopeless_loss && log.hopeless_loss_lines >= kHopelessLines) {
    Failure failure =
        failure_of(log, *log.hopeless_loss,
                   say(language, "the loss is nan or infinite in the last {} lines that tell it, from {} on: {}",
                       log.hopeless_loss_lines, place_in(log.file, log.hopeless_loss->line), log.hopeless_loss->text));
    failure.progress_after = 0;  // steps after it are of no use
    failures.push_back(std::move(failure));
  } else if (log.bad_loss) {
    failures.push_back(failure_of(log, *log.bad_loss,
                                  say(language, "a loss is nan or infinite in {} of the {} lines that tell losses",
                                      log.bad_loss_lines, log.loss_lines)));
    failures.back().progress_after = std::max<std::int64_t>(1, failures.back().progress_after);
  }
}

/// By how much they tell, most first.
std::vector<Failure> failures_of(const TextLog& log, Language language) {
  std::vector<Failure> failures;
  if (log.traceback) {
    failures.push_back(failure_of(log, *log.traceback, last_line(log.traceback->text)));
    failures.back().is_traceback = true;
  }
  for (const auto* quote : {&log.exception, &log.out_of_memory, &log.host_out_of_memory, &log.crash}) {
    if (*quote) {
      failures.push_back(failure_of(log, **quote, (*quote)->text));
    }
  }
  add_losses(log, language, failures);
  // A line of level ERROR alone is no failure: programs log errors and go on. At the very end it is.
  if (log.error && log.error->progress_before == log.progress_lines && log.progress_lines > 0 &&
      (!log.claim || log.claim->line < log.error->line)) {
    failures.push_back(failure_of(log, *log.error, log.error->text));
  }
  return failures;
}

const TextLog* ended_by_scheduler(const JobLogs& job) {
  const TextLog* found = nullptr;
  for (const TextLog& log : job.texts) {
    if (log.end != LogEnd::kUnknown && (found == nullptr || log.end == LogEnd::kTimeLimit)) {
      found = &log;
    }
  }
  return found;
}

/// The first that nothing went on after, else the first.
std::optional<Failure> worst_failure(const JobLogs& job) {
  std::vector<Failure> all;
  for (const TextLog& log : job.texts) {
    for (Failure& failure : failures_of(log, job.language)) {
      all.push_back(std::move(failure));
    }
  }
  const auto fatal = std::find_if(all.begin(), all.end(), [](const Failure& one) { return one.progress_after == 0; });
  if (fatal != all.end()) {
    return *fatal;
  }
  return all.empty() ? std::nullopt : std::optional(all.front());
}

void add_failure(const Failure& failure, const JobLogs& job, Signals& signals) {
  signals.exception = failure.message;
  signals.steps_after_exception = failure.progress_after;
  for (const TextLog& log : job.texts) {
    for (const auto* memory : {&log.out_of_memory, &log.host_out_of_memory}) {
      if (*memory) {
        signals.output_tail += (*memory)->text + "\n";
      }
    }
  }
  if (failure.is_traceback) {
    signals.output_tail += failure.quote.text;
  }
  auto& evidence = signals.evidence["run-failed"];
  evidence.push_back(say(job.language, "it stands at {}", place_in(failure.log->file, failure.quote.line)));
  if (failure.progress_after == 0 && failure.log->exit_code) {
    signals.exit_code = failure.log->exit_code;
  }
  const auto& claim = failure.log->claim;
  if (claim && claim->line > failure.quote.line && failure.progress_after == 0) {
    evidence.push_back(say(job.language, "a later line claims success all the same: \"{}\" ({})", claim->text,
                           place_in(failure.log->file, claim->line)));
  }
}

bool claims_success_at_end(const JobLogs& job) {
  return std::any_of(job.texts.begin(), job.texts.end(), [](const TextLog& log) {
    return log.claim && log.progress_lines > 0 && log.claim->progress_before == log.progress_lines;
  });
}

}  // namespace

void add_end(const JobLogs& job, Signals& signals) {
  if (const TextLog* log = ended_by_scheduler(job)) {
    signals.outcome = log->end == LogEnd::kTimeLimit   ? Outcome::kTimedOut
                      : log->end == LogEnd::kCancelled ? Outcome::kStopped
                                                       : Outcome::kFailed;
    const char* rule = log->end == LogEnd::kTimeLimit ? "run-timed-out" : "run-failed";
    signals.evidence[rule].push_back(say(job.language, "the scheduler said: {} ({})", log->end_line->text,
                                         place_in(log->file, log->end_line->line)));
  }
  if (const auto failure = worst_failure(job)) {
    add_failure(*failure, job, signals);
  } else if (signals.outcome == Outcome::kUnknown && claims_success_at_end(job)) {
    signals.outcome = Outcome::kCompleted;
  }
}

}  // namespace unidle::diagnose::detail
