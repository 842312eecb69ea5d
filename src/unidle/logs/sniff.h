// What kind of log a file is, by its content; names say nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "unidle/logs/gpu_format.h"

namespace unidle::logs {

enum class Kind {
  kEmpty,   // nothing but blanks
  kRecord,  // one of our own records
  kGpu,     // of a program that watches GPUs
  kTrace,   // Chrome JSON
  kText,    // everything else that is text
};

struct Content {
  Kind kind = Kind::kEmpty;
  const GpuFormat* gpu = nullptr;  // of kGpu
};

/// What can be read, for messages: "logs of dcgmi dmon, ...; Slurm output, training logs, torch profiler traces".
std::string known_logs();

/// Looks at the first 64 KiB. A folder is a record when it holds one. Throws kInput (subject: the path) when the file
/// is missing, cannot be read, or holds binary data.
Content sniff(const std::filesystem::path& path);
/// A table that tells of a run, but not in a form that is read.
struct OtherTable {
  std::string what;     // "is a table of sacct"
  std::string instead;  // what to do
};
/// For a text in which nothing was recognised, by its first lines.
std::optional<OtherTable> other_table(const std::filesystem::path& path);

/// The same as sniff() for bytes at hand, which stand for the begin of the file `name`.
Content sniff_bytes(std::string_view head, const std::string& name);

}  // namespace unidle::logs
