// How a run ended, according to its logs.
#include <algorithm>
#include <string_view>

#include "unidle/diagnose/detail/output.h"
#include "unidle/diagnose/logs/job_logs.h"
#include "unidle/logs/timestamp.h"

namespace unidle::diagnose::detail {

namespace {

using unidle::logs::LogEnd;
using unidle::logs::Quote;
using unidle::logs::TextLog;

/// This many nan or infinite losses in a row do not recover.
constexpr std::int64_t kHopelessLines = 3;

/// A failure that ended the run, or that the run survived.
struct LogFailure {
  const TextLog* log = nullptr;
  Quote quote;
  PrintedFailure failure;
  std::optional<std::int64_t> t_ns;  // on a clock shared with other files
};

LogFailure trouble_of(const TextLog& log, const Quote& quote, std::string message) {
  return {
      &log, quote, {std::move(message), std::nullopt, unidle::logs::progress_after(log, quote) > 0, {}}, std::nullopt};
}

void add_losses(const TextLog& log, Language language, std::vector<LogFailure>& troubles) {
  if (log.hopeless_loss && log.trailing_bad_loss_lines >= kHopelessLines) {
    troubles.push_back(trouble_of(
        log, *log.hopeless_loss,
        translate(language, "the loss is nan or infinite in the last {} lines that tell it, from {} on: {}",
                  log.trailing_bad_loss_lines, place_in(log.file, log.hopeless_loss->line), log.hopeless_loss->text)));
    troubles.back().failure.went_on = false;  // steps after it are useless
  } else if (log.bad_loss) {
    troubles.push_back(
        trouble_of(log, *log.bad_loss,
                   translate(language, "a loss is nan or infinite in {} of the {} lines that tell losses",
                             log.bad_loss_lines, log.loss_lines)));
    troubles.back().failure.went_on = true;
  }
}

/// Most decisive first.
std::vector<LogFailure> troubles_of(const TextLog& log, Language language) {
  std::vector<LogFailure> troubles;
  if (const auto decisive = unidle::logs::decisive_failure(log); decisive.failure != nullptr) {
    troubles.push_back({&log, decisive.failure->quote, printed_failure(decisive),
                        log.has_date ? decisive.failure->t_ns : std::nullopt});
    auto& facts = troubles.back().failure.facts;
    if (!facts.rank && facts.blame == unidle::logs::Blame::kLauncher) {
      facts.rank = log.first_rank;
    }
  }
  add_losses(log, language, troubles);
  // A line of level ERROR is not a failure, since programs log errors and go on, unless it is the last one.
  if (log.error && log.error->progress_before == log.progress_lines && log.progress_lines > 0 &&
      (!log.claim || log.claim->line < log.error->line)) {
    troubles.push_back(trouble_of(log, *log.error, log.error->text));
    troubles.back().failure.facts.blame = unidle::logs::Blame::kLauncher;  // weaker than any other failure
  }
  return troubles;
}

/// For several processes with a log each: causes before consequences, then by time.
bool explains_more(const LogFailure& one, const LogFailure& other) {
  if (one.failure.went_on != other.failure.went_on) {
    return !one.failure.went_on;
  }
  const auto order = unidle::logs::order_of(one.failure.facts);
  const auto order_of_other = unidle::logs::order_of(other.failure.facts);
  return order != order_of_other ? order < order_of_other : one.t_ns && other.t_ns && *one.t_ns < *other.t_ns;
}

/// The trouble that best explains the end; the first one of equals.
std::optional<LogFailure> most_decisive_failure(const JobLogs& job) {
  std::optional<LogFailure> worst;
  for (const TextLog& log : job.texts) {
    for (LogFailure& trouble : troubles_of(log, job.language)) {
      if (!worst || explains_more(trouble, *worst)) {
        worst = std::move(trouble);
      }
    }
  }
  return worst;
}

std::optional<PrintedFailure> out_of_memory_in(const JobLogs& job) {
  std::optional<PrintedFailure> found;
  for (const TextLog& log : job.texts) {
    const auto memory = unidle::logs::lack_of_memory(log);
    if (memory.failure != nullptr && (!found || (found->went_on && !memory.went_on))) {
      found = printed_failure(memory);
    }
  }
  return found;
}

/// The exit code of the process that failed first when its launcher says so, else the last one stated.
std::optional<int> exit_code_of(const LogFailure& trouble) {
  std::optional<int> code;
  for (const auto& failure : trouble.log->failures) {
    const bool by_launcher = trouble.failure.facts.blame == unidle::logs::Blame::kLauncher;
    const bool of_another =
        !by_launcher && trouble.failure.facts.rank && failure.facts.rank != trouble.failure.facts.rank;
    if (failure.facts.exit_code > 0 && !of_another && unidle::logs::progress_after(*trouble.log, failure.quote) == 0) {
      code = failure.facts.exit_code;
    }
  }
  return code;
}

void add_trouble(const LogFailure& trouble, const JobLogs& job, Signals& signals) {
  const bool fatal = !trouble.failure.went_on;
  auto& evidence = signals.failure_evidence;
  const std::string place = place_in(trouble.log->file, trouble.quote.line);
  evidence.push_back(trouble.t_ns ? translate(job.language, "it stands at {}, logged at {}", place,
                                              unidle::logs::format_stamp(*trouble.t_ns))
                                  : translate(job.language, "it stands at {}", place));
  if (fatal && !signals.exit_code) {
    signals.exit_code = exit_code_of(trouble);
  }
  const auto& claim = trouble.log->claim;
  if (claim && claim->line > trouble.quote.line && fatal) {
    evidence.push_back(translate(job.language, "a later line claims success all the same: \"{}\" ({})", claim->text,
                                 place_in(trouble.log->file, claim->line)));
  }
}

/// Whether no unit follows the claim. The results of a TensorFlow estimator name the last one: "global_step = 5468".
bool counted_no_further(const TextLog& log) {
  const bool estimator = log.claim->text.find("oss for final step") != std::string::npos;
  const auto counted = log.counted();
  return counted.restarts == log.before_claim.restarts &&
         counted.changes <= log.before_claim.changes + (estimator ? 1 : 0);
}

/// True when only results follow the claim: "Training complete", then test metrics.
bool claim_holds(const TextLog& log) {
  if (!log.claim) {
    return false;
  }
  const bool of_a_run = log.progress_lines > 0 || log.claim_names_training;  // otherwise something else succeeded
  // tqdm draws a bar once more when it closes.
  const bool only_results =
      log.claim_names_training && counted_no_further(log) && log.open_bar_line <= log.claim->line + 1;
  return of_a_run && (only_results || log.claim->progress_before == log.progress_lines);
}

/// True when the log says so, or its counters reached their totals.
bool is_complete(const TextLog& log) {
  const bool failed = log.failed_part && log.failed_part->progress_before == log.progress_lines;
  return (log.is_whole && !failed) || claim_holds(log);
}

/// A person pressed Ctrl-C, or torchrun or Lightning was ended from outside (SIGHUP, SIGINT, SIGTERM), and no other
/// failure explains the end.
bool is_interrupt(const LogFailure& trouble) {
  const std::string_view message = trouble.failure.message;
  return !trouble.failure.went_on && (message.starts_with("KeyboardInterrupt") || message.ends_with("got signal: 1") ||
                                      message.ends_with("got signal: 2") || message.ends_with("got signal: 15") ||
                                      message.substr(0, message.find(':')).ends_with(".SIGTERMException"));
}

const TextLog* ended_by_scheduler(const JobLogs& job) {
  const TextLog* found = nullptr;
  for (const TextLog& log : job.texts) {
    if (log.end && (found == nullptr || log.end->end == LogEnd::kTimeLimit)) {
      found = &log;
    }
  }
  return found;
}

/// A failed job may be cancelled as well: by the scheduler, or by a person who sees it hang.
bool failed_before(const std::optional<LogFailure>& trouble, const TextLog& ended) {
  return trouble && !trouble->failure.went_on && trouble->failure.facts.blame == unidle::logs::Blame::kOwn &&
         (trouble->log != &ended || trouble->quote.line < ended.end->quote.line);
}

Outcome outcome_of(const TextLog& ended, const std::optional<LogFailure>& trouble) {
  switch (ended.end->end) {
    case LogEnd::kTimeLimit: return Outcome::kTimedOut;
    case LogEnd::kCancelled: return failed_before(trouble, ended) ? Outcome::kFailed : Outcome::kStopped;
    default: return Outcome::kFailed;
  }
}

std::string scheduler_said(const JobLogs& job, const TextLog& log, const unidle::logs::SchedulerEnd& end) {
  return translate(job.language, "the scheduler said: {} ({})", end.quote.text, place_in(log.file, end.quote.line));
}

void add_earlier_attempts(const JobLogs& job, Signals& signals) {
  for (const TextLog& log : job.texts) {
    for (const auto& attempt : log.earlier) {
      signals.earlier_attempts.push_back({attempt.end == LogEnd::kTimeLimit, scheduler_said(job, log, attempt)});
    }
  }
}

}  // namespace

void add_end(const JobLogs& job, Signals& signals) {
  const auto trouble = most_decisive_failure(job);
  if (const TextLog* log = ended_by_scheduler(job)) {
    signals.outcome = outcome_of(*log, trouble);
    auto& told = log->end->end == LogEnd::kTimeLimit ? signals.limit_evidence : signals.failure_evidence;
    told.push_back(scheduler_said(job, *log, *log->end));
  }
  add_earlier_attempts(job, signals);
  signals.printed.emplace();
  if (signals.outcome == Outcome::kUnknown && trouble && is_interrupt(*trouble)) {
    signals.outcome = Outcome::kStopped;
    return;
  }
  if (signals.outcome == Outcome::kUnknown && (!trouble || trouble->failure.went_on) &&
      std::any_of(job.texts.begin(), job.texts.end(), is_complete)) {
    signals.outcome = Outcome::kCompleted;
  }
  if (trouble) {
    signals.printed->failure = trouble->failure;
    signals.printed->memory = out_of_memory_in(job);
    add_trouble(*trouble, job, signals);
  }
}

}  // namespace unidle::diagnose::detail
