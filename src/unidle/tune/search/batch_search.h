// Chooses the next batch size to measure.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"

namespace unidle::tune {

/// A possible micro-batch size, with the changes that belong to it.
struct BatchChoice {
  long long size = 0;
  knobs::Settings changes;  // batch.size, with batch.accumulation or optimizer.lr if needed
  std::string reason;
};

/// Sizes in ascending order, including the present one (without changes); empty when there is no other. Exact divisors
/// keep the effective batch (size times accumulation). With `allow_semantic` it may change: sizes are then the present
/// one times 2^n and 3 * 2^n, up to a factor of 4096 in either direction, and a learning rate in `settings` grows with
/// the square root of the effective batch. No effective batch except the present one exceeds `run_samples`, the length
/// of the run.
std::vector<BatchChoice> batch_choices(const knobs::Settings& settings, bool allow_semantic,
                                       long long run_samples = std::numeric_limits<long long>::max());

/// Doubles from the present size while that pays (one doubling may gain nothing), then bisects between the best size
/// and the first that was slower or did not fit. If the first doubling is already slower, searches smaller sizes. Not
/// thread-safe.
class BatchSearch {
 public:
  enum class Result {
    kBetter,  // faster than the best so far
    kFlat,    // not slower either: sizes in between will not be faster
    kWorse,   // slower
    kFailed,  // did not run, probably for lack of memory
  };

  /// `sizes`: ascending and positive; `start`: index of the present one; at most `trials` in total.
  BatchSearch(std::vector<long long> sizes, std::size_t start, int trials);

  /// Index of the size to measure next; nothing when the search is over.
  std::optional<std::size_t> next() const;
  /// Reports the result for the size that next() returned.
  void report(Result result);
  std::size_t best() const { return best_; }

 private:
  std::optional<std::size_t> doubled() const;
  std::optional<std::size_t> halved() const;
  std::optional<std::size_t> between() const;

  std::vector<long long> sizes_;
  std::size_t start_ = 0;
  std::size_t best_ = 0;
  int left_ = 0;                      // remaining trials
  bool up_ = true;                    // still doubling
  std::size_t reach_ = 0;             // index of the largest size reached by doubling
  bool flat_ = false;                 // the last doubling gained nothing
  bool down_ = false;                 // searching below the present size
  std::optional<std::size_t> above_;  // smallest size above the best that is known not to pay
};

}  // namespace unidle::tune
