// Records a process that runs already and asked for it: `unidle.observe()` of the Python package.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "unidle/record/record.h"

namespace unidle::observe {

struct AttachOptions {
  pid_t pid = 0;                  // the record ends when this process does, at the latest
  pid_t tree = 0;                 // root of the recorded process tree; 0: `pid`
  std::vector<std::string> argv;  // its command, for the record
  std::filesystem::path record;   // as in Options
  std::vector<record::Setting> configured;
  /// Called once recording has begun, with the record's folder and the folder for the rings.
  std::function<void(const std::filesystem::path&, const std::filesystem::path&)> recording;
};

/// The file in the folder for the rings in which the process says, as JSON, that recording shall end:
/// {"outcome": "completed", "failed" or "stopped", "code": its exit code if known}.
constexpr const char* kEndFile = "end.json";

/// Records until the process ends or has written kEndFile. The process is not our child, and is only looked at. Returns
/// the record's folder. Throws kInput when there is no such process, kIo when the record cannot be written.
std::filesystem::path attach(const AttachOptions& options);

}  // namespace unidle::observe
