#include "unidle/diagnose/logs/how_far.h"

#include <algorithm>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/units.h"

namespace unidle::diagnose::detail {

namespace {

using unidle::logs::Counter;
using unidle::logs::TextLog;

/// Seconds per unit, including validation and checkpoints, because a whole run includes them too.
std::optional<double> seconds_each(const TextLog& log, const Counter& counter) {
  if (!counter.first_ns || !counter.changed_ns || counter.advanced <= 0 || *counter.changed_ns <= *counter.first_ns) {
    return std::nullopt;
  }
  return std::max(0.0, seconds(*counter.changed_ns - *counter.first_ns) - log.phases.away_s) / counter.advanced;
}

bool is_done(const Counter& counter) {
  return counter.total && counter.last >= *counter.total && counter.last_had_loss;
}

/// What remained when the log ended, in `counter`'s units.
struct Rest {
  const Counter* counter = nullptr;
  double units = 0;
};

/// The loop that was running at the end: the outer of two nested ones, unless it finished before the inner one began.
std::optional<Rest> rest_of(const TextLog& log) {
  const Counter* outer = nullptr;
  const Counter* latest = nullptr;
  for (const Counter& counter : log.counters) {
    if (!counter.total || !counter.changed_ns) {
      continue;
    }
    if (counter.restarts == 0 && !is_done(counter) && (outer == nullptr || *counter.total < *outer->total)) {
      outer = &counter;
    }
    if (latest == nullptr || *counter.last_ns > *latest->last_ns) {
      latest = &counter;
    }
  }
  const Counter* counter = outer != nullptr ? outer : latest;
  if (counter == nullptr || counter->last >= *counter->total) {
    return std::nullopt;
  }
  // A line with a loss counts what is done; any other line announces what begins.
  const double done = counter->last_had_loss && counter->first_had_loss ? counter->last : counter->last - 1;
  return Rest{counter, *counter->total - std::max(0.0, done)};
}

std::string passes_sentence(const TextLog& log, Language language, const Signals& signals) {
  const Counter* epochs = log.counter("epoch");
  if (epochs == nullptr || !log.rows_per_epoch || !signals.samples_per_s) {
    return "";
  }
  return translate(language, "an epoch of {} rows took {} of training: {} rows/s", grouped(*log.rows_per_epoch),
                   format_seconds(*log.rows_per_epoch / *signals.samples_per_s), grouped(*signals.samples_per_s));
}

}  // namespace

void add_how_far(const TextLog& log, const JobTimes& times, Language language, Signals& signals) {
  std::vector<std::string> facts;
  const auto rest = rest_of(log);
  const auto each = rest ? seconds_each(log, *rest->counter) : std::nullopt;
  if (rest) {
    facts.push_back(translate(language, "it had come to {} {} of {}{}", translate(language, rest->counter->kind),
                              grouped(rest->counter->last), grouped(*rest->counter->total),
                              each ? translate(language, ", {} each", format_seconds(*each)) : ""));
  }
  if (each && times.begin_ns) {
    const double needed = seconds(*rest->counter->changed_ns - *times.begin_ns) + rest->units * *each;
    facts.push_back(translate(language, "at that speed the whole run needs {} ({:.1f} times what it had)",
                              format_seconds(needed), needed / std::max(1.0, signals.wall_s)));
  }
  if (const std::string sentence = passes_sentence(log, language, signals); !sentence.empty()) {
    facts.push_back(sentence);
  }
  const bool failed = signals.printed && signals.printed->failure && !signals.printed->failure->went_on;
  for (auto* told : {signals.outcome == Outcome::kTimedOut ? &signals.limit_evidence : nullptr,
                     failed ? &signals.failure_evidence : nullptr}) {
    if (told != nullptr) {
      told->insert(told->begin(), facts.begin(), facts.end());  // these lines say more than the quotes
    }
  }
}

}  // namespace unidle::diagnose::detail
