// The files that an optimisation leaves: the better configuration and the record of its trials.
#pragma once

#include <filesystem>
#include <optional>

#include "unidle/base/disk.h"
#include "unidle/tune/output/result.h"

namespace unidle::tune {

/// Makes `.unidle/runs/TIME-optimize` and names it in `result`; a failure is only logged.
void write_record(OptimizeResult& result);

struct Written {
  std::filesystem::path output;
  std::optional<std::filesystem::path> backup;
};

/// Before a search, so that what it finds has a place. Throws kUsage when `output` is the configuration itself, a
/// folder, or in one that is not there, and kIo when nothing can be written there.
void check_output(const std::filesystem::path& config, const std::filesystem::path& output);

/// Writes the new text to `output`, or beside the configuration as NAME.optimized.EXT, or in its place with a backup
/// NAME.bak.EXT (NAME.bak2.EXT, ... when that exists). Throws what check_output() does.
Written write_result(const OptimizeResult& result, const std::optional<std::filesystem::path>& output, bool in_place,
                     Disk& disk = system_disk());

}  // namespace unidle::tune
