// Which batch size to measure next.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"

namespace unidle::tune {

/// A micro-batch size that a program may be given, with what has to change beside it.
struct BatchChoice {
  long long size = 0;
  knobs::Settings changes;  // batch.size, and batch.accumulation or optimizer.lr where they go with it
  std::string reason;
};

/// Smallest first, the present size (with no changes) among them; empty when there is none but that. The effective
/// batch (size times accumulation) is held by exact divisors. With `allow_semantic` it may change: then sizes are the
/// present one times 2^n and 3 * 2^n up to a factor of 4096 either way, and a learning rate that `settings` has
/// goes with the root of the effective batch. No effective batch but the present one is larger than `run_samples`, the
/// length of the run.
std::vector<BatchChoice> batch_choices(const knobs::Settings& settings, bool allow_semantic,
                                       long long run_samples = std::numeric_limits<long long>::max());

/// Doubles from the present size while that pays (one doubling may give nothing), then halves the distance between the
/// best size and the first one that was slower or had no room; where already the first doubling is slower, it looks
/// downwards. Not thread-safe.
class BatchSearch {
 public:
  enum class Result {
    kBetter,  // faster than the best so far
    kFlat,    // no slower either: sizes in between will not be faster
    kWorse,   // slower
    kFailed,  // it did not run: no room, most likely
  };

  /// `sizes`: ascending and positive; `start`: where in them the present one is; at most `trials` in all.
  BatchSearch(std::vector<long long> sizes, std::size_t start, int trials);

  /// Index of the size to measure; nothing when the search is over.
  std::optional<std::size_t> next() const;
  /// What became of next().
  void report(Result result);
  std::size_t best() const { return best_; }

 private:
  std::optional<std::size_t> doubled() const;
  std::optional<std::size_t> halved() const;
  std::optional<std::size_t> between() const;

  std::vector<long long> sizes_;
  std::size_t start_ = 0;
  std::size_t best_ = 0;
  int left_ = 0;                      // trials
  bool up_ = true;                    // still doubling
  std::size_t reach_ = 0;             // the largest size that was doubled to
  bool flat_ = false;                 // the last doubling gave nothing
  bool down_ = false;                 // looking below the present size
  std::optional<std::size_t> above_;  // smallest size known not to pay, larger than the best
};

}  // namespace unidle::tune
