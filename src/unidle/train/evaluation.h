// Metrics over all held-out data.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "unidle/data/subset.h"
#include "unidle/train/input/input.h"
#include "unidle/train/ranks/ranks.h"
#include "unidle/train/step/precision.h"
#include "unidle/train/workload.h"

namespace unidle::train {

/// Takes the model of a workload once through what the workload holds out, as often as it is asked. The sums of the
/// metrics stay on the device and are read once, at the end. A workload that holds out no source validates by itself.
/// One thread.
class Evaluation {
 public:
  /// `workload` and `config` must outlive this, and `ranks`, if there are several: each looks at its share.
  Evaluation(Workload& workload, const Config& config, at::Device device, Ranks* ranks = nullptr);

  /// The model is in evaluation mode meanwhile. Throws what the source throws.
  std::map<std::string, double> run(const Precision& precision);
  /// Samples that one run looks at.
  std::int64_t samples() const;

 private:
  std::map<std::string, double> run_held_out(const Precision& precision, const data::Source& held_out);
  /// What this process looks at.
  const data::Source& share_of(const data::Source& held_out);
  std::unique_ptr<Input> make_input(const data::Source& held_out) const;

  Workload& workload_;
  const Config& config_;
  at::Device device_;
  Ranks* ranks_;
  std::unique_ptr<data::Subset> share_;  // of several ranks
  std::unique_ptr<Input> kept_;          // with data.on_device: read once for all runs
};

}  // namespace unidle::train
