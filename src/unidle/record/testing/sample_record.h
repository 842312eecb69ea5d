#pragma once

#include <filesystem>

namespace unidle::record::testing {

/// A record with that many steps in it and the command `python train.py`, finished.
void write_sample(const std::filesystem::path& folder, int steps = 500);

/// Reads everything there is, and throws what that throws.
void read_all(const std::filesystem::path& path);

}  // namespace unidle::record::testing
