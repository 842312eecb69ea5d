// Finds a training process that does not report, and says why.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "unidle/base/files.h"

namespace unidle::observe {

/// Why a process that has loaded torch does not report. The names are those in the record's note of type "unseen".
enum class UnseenReason {
  kIsolated,     // python -I or -E: PYTHONPATH is ignored
  kNoSite,       // python -S: sitecustomize is not imported
  kEnvironment,  // started without the variables that unidle set
  kPath,         // PYTHONPATH was set to a value without unidle's folder
  kNoPython,     // another program with LibTorch in it
  kOther,        // a Python that is too old, or whose start-up was changed
};
std::string_view to_string(UnseenReason why);

/// `arguments` and `variables` as /proc shows them: each ends with a zero byte. `shim`: the folder that unidle puts on
/// PYTHONPATH; empty if unknown.
UnseenReason why_unseen(std::string_view arguments, std::string_view variables, std::string_view shim);

struct UnseenProcess {
  std::int64_t pid = 0;
  std::string command;  // its first arguments
  UnseenReason why = UnseenReason::kOther;
};

/// Searches the tree of `root_pid` for a process that has loaded torch and is neither in `reporting` nor a child of one
/// that is. Reads /proc/PID/maps of the first 64 processes that do not report.
std::optional<UnseenProcess> find_unseen(std::int64_t root_pid, const std::set<std::int64_t>& reporting,
                                         const std::filesystem::path& root = host_root());

}  // namespace unidle::observe
