#pragma once

#include <filesystem>

namespace unidle::record::testing {

/// Writes a finished record with `steps` steps and the command `python train.py`.
void write_sample(const std::filesystem::path& folder, int steps = 500);

/// Reads the whole record; throws what the reader throws.
void read_all(const std::filesystem::path& path);

}  // namespace unidle::record::testing
