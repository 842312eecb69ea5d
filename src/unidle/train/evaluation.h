// Computes metrics over all held-out data.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "unidle/data/subset.h"
#include "unidle/train/input/input.h"
#include "unidle/train/ranks/ranks.h"
#include "unidle/train/step/precision.h"
#include "unidle/train/workload.h"

namespace unidle::train {

/// Each run passes all of the workload's held-out data through its model once. The sums of the metrics stay on the
/// device and are read once, at the end. With several processes each has a share, and their sums are added. One thread.
class Evaluation {
 public:
  /// `workload`, `config` and, when given, `ranks` must outlive this.
  Evaluation(Workload& workload, const Config& config, at::Device device, Ranks* ranks = nullptr);

  /// Metrics of all held-out data, the same in all processes. The model is in evaluation mode during the call. Throws
  /// what the source throws.
  std::map<std::string, double> run(const Precision& precision);
  /// Samples that one run evaluates in this process.
  std::int64_t samples() const;

 private:
  /// Over all processes: items of the held-out source, or samples of a workload without one.
  std::int64_t items() const;
  /// The items of this process. Never empty: when there are fewer items than processes, it has another's item, to give
  /// the sums their shape, and does not count it.
  std::vector<std::int64_t> share() const;
  bool share_counts() const { return ranks_ == nullptr || ranks_->rank() < items(); }
  at::Tensor sums_of_batches(const Precision& precision, const data::Source& held_out);
  at::Tensor sums_of_samples(const Precision& precision);
  std::unique_ptr<Input> make_input(const data::Source& held_out) const;

  Workload& workload_;
  const Config& config_;
  at::Device device_;
  Ranks* ranks_;
  std::unique_ptr<data::Subset> share_;  // with several ranks
  std::unique_ptr<Input> kept_;          // with data.on_device: read once, used by all runs
};

}  // namespace unidle::train
