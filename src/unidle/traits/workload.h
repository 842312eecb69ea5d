// Facts about a workload that hold for every configuration, one file each in workloads/, for advice, which has no
// torch, and for the engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unidle::traits {

/// Immutable, therefore thread-safe.
struct Workload {
  std::string name;             // the value of a configuration's key `workload`
  std::string summary;          // one line
  bool convolutions = false;    // over inputs of one size
  bool costly_samples = false;  // costly and equal in every epoch: decoding, predicting features
  bool feature_cache = false;   // the feature cache can keep them for later runs: cache.features=disk
  bool small_data = false;      // usually fits into a device's memory
};

/// train.samples, the length of a run, when the configuration does not set it.
inline constexpr std::string_view kRunSamples = "1024";

/// All known workloads, by name. unidle-train may not contain all of them.
const std::vector<const Workload*>& all_workloads();

/// nullptr when no workload has that name.
const Workload* find_workload(std::string_view name);

/// For a workload's own code. Throws kInternal when no workload has that name.
const Workload& the_workload(std::string_view name);

/// "keypoint, protein, ...", for messages.
std::string workload_names();

}  // namespace unidle::traits
