// The result of a training run.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "unidle/language/language.h"
#include "unidle/train/config.h"
#include "unidle/train/workload.h"

namespace unidle::train {

struct Summary {
  std::string workload;
  std::string device;
  std::string config;  // file name
  /// Training samples per second of the loop: includes waiting for data, excludes start-up, validation, checkpoints and
  /// the first train.warmup_samples samples. The rates of a record (unidle/account/rate.h) are another thing: there the
  /// run is over, so that warm-up follows from its number of steps; the engine is also timed when nothing observes it.
  double samples_per_s = 0;
  /// The same, including validation and checkpoints, the last validation too.
  double end_to_end_samples_per_s = 0;
  std::int64_t steps = 0;            // of this process
  std::int64_t samples = 0;          // of this process
  std::int64_t skipped_steps = 0;    // skipped because gradients were not finite
  double seconds = 0;                // loop, validation and checkpoints, warm-up included
  std::optional<double> loss_first;  // nothing when there was nothing left to train
  std::optional<double> loss_last;
  std::map<std::string, double> metric;
  Effective effective;
  bool stopped = false;  // on request, before the end
};

/// `text` as the setting's JSON type.
nlohmann::json typed_value(const Setting& setting, const std::string& text);
/// The documented JSON on one line.
std::string to_json(const Summary& summary);
/// Several lines for people, ending with a newline.
std::string to_text(const Summary& summary, Language language = Language::kEnglish);

}  // namespace unidle::train
