// Reads the steps that a process had marked but not written as events when it ended: docs/probe-format.md, stretches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "unidle/probe/ring_reader.h"
#include "unidle/probe/unidle_probe.h"

namespace unidle::probe {

struct Stretch {
  std::int64_t pid = 0;
  std::uint64_t process_start = 0;
  /// The completed steps, as the process would have written them at the end of the stretch; empty while no stretch is
  /// open.
  std::vector<unidle_step> steps;
};

/// Reads the file's current state, whether its process runs or not. Nothing if it is not a stretch file, incomplete or
/// damaged.
std::optional<Stretch> read_stretch(const std::filesystem::path& path, const OpenFile& opener = open_file);

}  // namespace unidle::probe
