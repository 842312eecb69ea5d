// Generates synthetic tables in KuaiRand's format.
#pragma once

#include <cstdint>
#include <filesystem>

namespace unidle::workloads::recsys {

/// Writes `rows` interactions as `parts` CSV parts with 157 features under the names of KuaiRand's merged logs, users
/// and videos (categories as 0 or 1). Users and videos have hidden tastes of 8 numbers; features show them with noise,
/// and clicks and play times follow from how well they match. A fifth of the users is for validation. The same `seed`
/// gives the same files.
void write_generated(const std::filesystem::path& folder, std::int64_t rows, int parts, std::uint64_t seed);

}  // namespace unidle::workloads::recsys
