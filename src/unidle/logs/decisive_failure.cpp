// Chooses the failure that explains the end of a log.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "unidle/base/substrings.h"
#include "unidle/logs/text_log.h"

namespace unidle::logs {

namespace {

/// For one process the last failure counts, because a handled error may lead to another one. But a shell reports the
/// end of a process after its traceback.
bool replaces(const Failure& later, const Failure& earlier) {
  return later.facts.blame == Blame::kOwn && later.facts.rank == earlier.facts.rank &&
         order_of(later.facts) == order_of(earlier.facts) && (later.is_traceback || !earlier.is_traceback);
}

/// Whether the progress after a traceback may have been printed before it: Python writes what is left in the buffer of
/// stdout, at most 8 KiB, after the traceback. Anything else than progress shows that the program went on.
bool is_left_over(const TextLog& log, const Failure& failure) {
  const bool survives = std::ranges::any_of(log.failures, [&](const Failure& one) {
    return one.is_traceback && one.quote.progress_before != failure.quote.progress_before;
  });
  if (survives || failure.facts.rank) {
    return false;
  }
  constexpr std::uint64_t kBuffer = 8192;
  const bool one_run = failure.quote.progress_before > 0 || progress_after(log, failure.quote) == 1;
  const bool only_progress = std::max(log.live_line, log.other_line) < failure.quote.line;
  return log.has_both_streams && failure.is_traceback && !failure.facts.hint && one_run && only_progress &&
         !log.is_whole && log.bytes - std::min(log.bytes, failure.end_byte) <= kBuffer;
}

/// Whether the program was not even started, and something else ran afterwards: a later traceback, or more than 64 KiB
/// of output without a step.
bool was_not_started(const TextLog& log, const Failure& failure) {
  static constexpr std::array<std::string_view, 3> kWords = {"can't open file", "command not found", ".py: error: "};
  constexpr std::uint64_t kMuch = std::uint64_t{64} << 10U;
  const Failure& last = log.failures.back();
  const bool again = last.is_traceback && last.quote.line > failure.quote.line;
  const bool other = log.progress_lines == 0 && log.bytes - std::min(log.bytes, last.end_byte) > kMuch;
  return contains_any(failure.message, kWords) && (again || other);
}

/// Whether the run continued, was started again, or handled the failure and claims to be done.
bool survived(const TextLog& log, const Failure& failure) {
  const bool went_on = progress_after(log, failure.quote) > 0 && !is_left_over(log, failure);
  return went_on || (failure.quote.line < log.started_line && !failure.facts.rank) || was_not_started(log, failure) ||
         (failure.facts.hint && (log.claim || log.is_whole));
}

/// The first failure that the run did not survive; with `rank`, of this rank only.
const Failure* first_fatal(const TextLog& log, std::optional<int> rank) {
  const Failure* first = nullptr;
  for (const Failure& one : log.failures) {
    if (survived(log, one) || (rank && one.facts.rank != rank)) {
      continue;
    }
    if (first == nullptr || order_of(one.facts) < order_of(first->facts) || replaces(one, *first)) {
      first = &one;
    }
  }
  return first;
}

/// The last failure for which `counts` is true; nullptr if there is none.
template <typename Counts>
const Failure* last_failure(const TextLog& log, Counts counts) {
  const auto found = std::find_if(log.failures.rbegin(), log.failures.rend(), counts);
  return found == log.failures.rend() ? nullptr : &*found;
}

bool is_own(const Failure& failure) { return failure.facts.blame == Blame::kOwn; }

}  // namespace

std::pair<Blame, bool> order_of(const FailureFacts& facts) {
  return {facts.blame, facts.speaker == Speaker::kLauncher};
}

std::int64_t progress_after(const TextLog& log, const Quote& quote) {
  return log.progress_lines - quote.progress_before;
}

DecisiveFailure decisive_failure(const TextLog& log) {
  const Failure* first = first_fatal(log, std::nullopt);
  if (first == nullptr) {
    const Failure* own = last_failure(log, is_own);
    return {own != nullptr || log.failures.empty() ? own : &log.failures.back(), true};
  }
  if (log.first_rank && first->facts.rank != log.first_rank) {
    const Failure* told = first_fatal(log, log.first_rank);
    return {told != nullptr && order_of(told->facts) <= order_of(first->facts) ? told : first};
  }
  if (first->facts.blame == Blame::kPeer) {  // other ranks may have finished their step
    const Failure* other =
        last_failure(log, [](const Failure& one) { return one.facts.rank && is_own(one) && !one.facts.hint; });
    return {other != nullptr ? other : first};
  }
  return {first};
}

DecisiveFailure lack_of_memory(const TextLog& log) {
  const auto lacks = [](const Failure& one) { return one.facts.lack != Lack::kNone; };
  const DecisiveFailure decisive = decisive_failure(log);
  if (decisive.failure == nullptr || lacks(*decisive.failure)) {
    return decisive;
  }
  const auto fatal = std::find_if(log.failures.begin(), log.failures.end(),
                                  [&](const Failure& one) { return lacks(one) && !survived(log, one); });
  return fatal != log.failures.end() ? DecisiveFailure{&*fatal} : DecisiveFailure{last_failure(log, lacks), true};
}

}  // namespace unidle::logs
