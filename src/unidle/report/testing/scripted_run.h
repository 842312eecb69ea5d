// Scripted runs for tests and for the pictures of the manual: no clock, no device, always the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/account/account.h"

namespace unidle::report::testing {

struct Script {
  std::string name = "run";
  int steps = 200;
  int batch = 4;
  double input_ms = 10;
  double transfer_ms = 0;  // 0: not reported, as on a CPU
  double compute_ms = 50;
  double sync_ms = 2;
  double optimizer_ms = 5;
  double other_ms = 2;
  double noise = 0.08;  // relative deviation of each part
  double startup_s = 4;
  int validate_every = 50;  // 0: never
  double validate_s = 2;
  int checkpoint_every = 0;
  double checkpoint_s = 0.5;
  double loss_factor = 1;  // of the loss curve
  double psnr_offset = 0;  // dB
  bool gpu = false;
  double cores = 1;  // CPUs in use, of `cpus`
  double cpus = 8;
  std::optional<double> others_cores = {};  // CPUs used by other processes; absent: not recorded
  std::vector<record::Setting> settings;
  std::uint64_t seed = 1;
};

/// Tidied, as from load_run().
account::RunData scripted_run(const Script& script);

/// Decodes each picture in the training process: the device waits.
Script naive_script();
/// The same training with a fixed loader.
Script tuned_script();
/// On a GPU, with utilisation, memory and power.
Script gpu_script();

/// Writes `run` as a record in `folder`.
void write_record(const account::RunData& run, const std::filesystem::path& folder);

}  // namespace unidle::report::testing
