// Snapshots as lines: for people, as CSV, and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unidle/monitor/snapshot.h"

namespace unidle::monitor {

/// "12:00:01  gpu0  82 % util  61 % SM  ...", one line a device, without a line end after the last.
std::string plain_lines(const Snapshot& snapshot);

/// {"type": "sample", "t", "cpu", "gpus", "processes", "run"}; what is absent is null.
nlohmann::json sample_json(const Snapshot& snapshot);

/// A table with the columns of the devices that were there at first.
class CsvWriter {
 public:
  /// The header, by this snapshot; a line without its end.
  std::string header(const Snapshot& snapshot);
  /// What is absent is an empty field.
  std::string row(const Snapshot& snapshot) const;

 private:
  std::vector<std::string> subjects_;
};

}  // namespace unidle::monitor
