// Steps that a process had marked and not yet told of when it ended: docs/probe-format.md, stretches.
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
  /// Those that are over, as the process would have told of them at the end of the stretch; none while no stretch is
  /// under way.
  std::vector<unidle_step> steps;
};

/// As the file is now, whether its process lives or not. Nothing when it is no such file, not whole or damaged.
std::optional<Stretch> read_stretch(const std::filesystem::path& path, const OpenFile& opener = open_file);

}  // namespace unidle::probe
