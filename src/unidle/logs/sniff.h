// Detects what kind of log a file is by its content; file names do not matter.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "unidle/logs/gpu_format.h"

namespace unidle::logs {

enum class Kind {
  kEmpty,   // nothing but blanks
  kRecord,  // a record of unidle
  kGpu,     // written by a program that watches GPUs
  kTrace,   // Chrome JSON
  kText,    // any other text
};

struct Content {
  Kind kind = Kind::kEmpty;
  const GpuFormat* gpu = nullptr;  // set for kGpu
};

/// What can be read, for messages: "logs of dcgmi dmon, ...; Slurm output, training logs, torch profiler traces".
std::string known_logs();

/// Reads the first 64 KiB. A folder counts as a record if it holds one. Throws kInput (subject: the path) when the file
/// is missing, cannot be read, or holds binary data.
Content sniff(const std::filesystem::path& path);
/// A table about a run in a form that is not supported.
struct OtherTable {
  std::string what;     // "is a table of sacct"
  std::string instead;  // what to do
};
/// Checks the first lines of a text in which nothing was recognised.
std::optional<OtherTable> other_table(const std::filesystem::path& path);

/// Like sniff(), for the first bytes of the file `name`.
Content sniff_bytes(std::string_view head, const std::string& name);

}  // namespace unidle::logs
