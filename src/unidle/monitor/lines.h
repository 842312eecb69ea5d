// Formats snapshots as lines for people, as CSV and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unidle/language/translator.h"
#include "unidle/monitor/snapshot.h"

namespace unidle::monitor {

/// "12:00:01  gpu0  82 % util  61 % SM  ...", one line per device, without a final newline.
std::string plain_lines(const Snapshot& snapshot, Language language = Language::kEnglish);

/// {"type": "sample", "t", "cpu", "gpus", "processes", "run"}; absent readings are null.
nlohmann::json sample_json(const Snapshot& snapshot);

/// What holds the clocks down; empty when nothing does.
std::string held_down_by(const telemetry::GpuReading& reading, const Translator& translator);

/// The state of a process in a word: "running" for 'R'. English; the catalogue has translations.
std::string state_name(char state);

/// A table whose columns are the devices of the first snapshot.
class CsvWriter {
 public:
  /// The header for this snapshot's devices, without a newline.
  std::string header(const Snapshot& snapshot);
  /// Absent readings are empty fields.
  std::string row(const Snapshot& snapshot) const;

 private:
  std::vector<std::string> subjects_;
};

}  // namespace unidle::monitor
