// The part of a search that tries batch sizes, measured like all other changes, including the loader.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "unidle/tune/search/batch_search.h"
#include "unidle/tune/search/contest.h"

namespace unidle::tune {

struct FoundBatch {
  BatchChoice choice;
  double gain = 1;  // relative to the present size
};

/// Trials of batch sizes, compared with the best settings so far. Not thread-safe.
class BatchTrials {
 public:
  /// `choices`: see batch_choices. `contest` and `log` must outlive it.
  BatchTrials(std::vector<BatchChoice> choices, Contest& contest, TrialLog& log)
      : choices_(std::move(choices)), contest_(contest), log_(log) {}

  /// Runs at most `trials` trials, while `may_go_on`. The returned size is the best so far and, as far as can be
  /// tested, fits the longest samples; nothing when it is the present size.
  std::optional<FoundBatch> find(int trials, const std::function<bool()>& may_go_on);

 private:
  BatchSearch::Result try_size(const BatchChoice& choice, double& ratio);
  bool fits_longest_samples();

  std::vector<BatchChoice> choices_;
  Contest& contest_;
  TrialLog& log_;
};

}  // namespace unidle::tune
