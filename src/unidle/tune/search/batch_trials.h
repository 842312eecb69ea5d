// The part of the search that is about the batch: measured like everything else, with the loader in it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "unidle/tune/search/batch_search.h"
#include "unidle/tune/search/contest.h"

namespace unidle::tune {

struct FoundBatch {
  BatchChoice choice;
  double gain = 1;  // over the present size
};

/// Trials of batch sizes, with the best so far as what they are compared with. Not thread-safe.
class BatchTrials {
 public:
  /// `choices`: see batch_choices. `contest` and `log` must outlive it.
  BatchTrials(std::vector<BatchChoice> choices, Contest& contest, TrialLog& log)
      : choices_(std::move(choices)), contest_(contest), log_(log) {}

  /// At most `trials` of them, and while `may_go_on`. The size found is the best now, and has room for the longest
  /// samples as far as that can be told; nothing where it is the present one.
  std::optional<FoundBatch> find(int trials, const std::function<bool()>& may_go_on);

 private:
  BatchSearch::Result try_size(const BatchChoice& choice, double& ratio);
  bool has_room_for_the_longest();

  std::vector<BatchChoice> choices_;
  Contest& contest_;
  TrialLog& log_;
};

}  // namespace unidle::tune
