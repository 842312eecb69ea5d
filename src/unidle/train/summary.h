// What a training run answers with.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "unidle/train/config.h"
#include "unidle/train/workload.h"

namespace unidle::train {

struct Summary {
  std::string workload;
  std::string device;
  std::string config;  // file name
  /// Training samples per second of the loop: waiting for data included; start-up, warm-up samples, validation and
  /// checkpoints left out.
  double samples_per_s = 0;
  /// The same with validation and checkpoints, the last validation too.
  double end_to_end_samples_per_s = 0;
  std::int64_t steps = 0;            // of this process
  std::int64_t samples = 0;          // of this process
  std::int64_t skipped_steps = 0;    // of them, left out because gradients were not finite
  double seconds = 0;                // loop, validation and checkpoints, warm-up included
  std::optional<double> loss_first;  // nothing where nothing was left to train
  std::optional<double> loss_last;
  std::map<std::string, double> metric;
  Effective effective;
  bool stopped = false;  // on request, before the end
};

/// `text` as the JSON type of the setting.
nlohmann::json typed_value(const Setting& setting, const std::string& text);
/// The fixed document; one line.
std::string to_json(const Summary& summary);
/// For a person; several lines, newline at the end.
std::string to_text(const Summary& summary);

}  // namespace unidle::train
