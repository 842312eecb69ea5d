// Metrics over all held-out data.
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

/// Takes the model of a workload once through what the workload holds out, as often as it is asked. The sums of the
/// metrics stay on the device and are read once, at the end. Several processes have a share each, and add up their
/// sums. One thread.
class Evaluation {
 public:
  /// `workload` and `config` must outlive this, and `ranks`, if there are several.
  Evaluation(Workload& workload, const Config& config, at::Device device, Ranks* ranks = nullptr);

  /// Metrics of all held-out data, the same in all processes. The model is in evaluation mode meanwhile. Throws what
  /// the source throws.
  std::map<std::string, double> run(const Precision& precision);
  /// Samples that one run looks at in this process.
  std::int64_t samples() const;

 private:
  /// Of all processes: items of the held-out source, or samples of a workload without one.
  std::int64_t items() const;
  /// Those that are this process's. Never none: where there are fewer than processes, it is another's, for the shape of
  /// the sums, and does not count.
  std::vector<std::int64_t> share() const;
  bool share_counts() const { return ranks_ == nullptr || ranks_->rank() < items(); }
  at::Tensor sums_of_batches(const Precision& precision, const data::Source& held_out);
  at::Tensor sums_of_samples(const Precision& precision);
  std::unique_ptr<Input> make_input(const data::Source& held_out) const;

  Workload& workload_;
  const Config& config_;
  at::Device device_;
  Ranks* ranks_;
  std::unique_ptr<data::Subset> share_;  // of several ranks
  std::unique_ptr<Input> kept_;          // with data.on_device: read once for all runs
};

}  // namespace unidle::train
