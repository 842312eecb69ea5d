// What is true of a workload whatever its configuration says: one file each in workloads/, for advice, which has no
// torch, and for the engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unidle::traits {

/// Thread-safe: nothing of it ever changes.
struct Workload {
  std::string name;             // as the key `workload` of a configuration has it
  std::string summary;          // one line
  bool convolutions = false;    // over inputs of one size
  bool costly_samples = false;  // and the same in every epoch: decoding, predicting features
  bool feature_cache = false;   // such samples can stay in the feature cache, for later runs: cache.features=disk
  bool small_data = false;      // as a rule all of it fits the memory of a device
};

/// train.samples, the length of a run, where a configuration does not say it.
inline constexpr std::string_view kRunSamples = "1024";

/// All that are known, by name. unidle-train may not have all of them.
const std::vector<const Workload*>& all_workloads();

/// nullptr when there is none of that name.
const Workload* find_workload(std::string_view name);

/// For the code of the workload itself. Throws kInternal when there is none of that name.
const Workload& the_workload(std::string_view name);

/// "keypoint, protein, ...", for messages.
std::string workload_names();

}  // namespace unidle::traits
