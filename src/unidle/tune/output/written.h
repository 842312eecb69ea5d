// The files that an optimisation writes: the better configuration and the record of its trials.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "unidle/base/disk.h"
#include "unidle/tune/output/result.h"

namespace unidle::tune {

/// Makes `.unidle/runs/TIME-NAME` and sets it in `result`; a failure is only logged. A patch of the program is in it
/// as record::kPatch too.
void write_record(OptimizeResult& result, std::string_view name = "optimize");

struct Written {
  std::filesystem::path output;
  std::optional<std::filesystem::path> backup;
};

/// Called before a search, so that its result can be written. Throws kUsage when `output` is the configuration itself,
/// a folder, or in a folder that does not exist, and kIo when nothing can be written there.
void check_output(const std::filesystem::path& config, const std::filesystem::path& output);

/// Writes the new text to `output`, or beside the configuration as NAME.optimized.EXT, or over it after a backup to
/// NAME.bak.EXT (NAME.bak2.EXT, ... when that exists). Throws what check_output() throws.
Written write_result(const OptimizeResult& result, const std::optional<std::filesystem::path>& output, bool in_place,
                     Disk& disk = system_disk());

}  // namespace unidle::tune
