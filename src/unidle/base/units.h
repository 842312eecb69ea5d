// Formats and parses numbers for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unidle {

/// 1536 -> "1.5 KiB"
std::string format_bytes(std::uint64_t bytes);
/// 0.0123 -> "12.3 ms", 75 -> "1 min 15 s"
std::string format_seconds(double seconds);
/// "90", "90s", "10m", "10min", "1.5h" and "7d" in seconds; nothing for anything else, or if it is not positive.
std::optional<double> parse_seconds(std::string_view text);
/// For times given by users: limited to a century either way, so that it can be added to any clock time. 0 for NaN.
std::int64_t nanoseconds(double seconds);
/// 1.23e9 -> "1.23 GFLOP"
std::string format_flops(double operations);
/// 0.624 -> "62 %"; below ten percent with one decimal.
std::string format_share(double share);
/// "1 run", "2 runs": appends an s for the plural.
std::string format_count(std::uint64_t count, std::string_view word);
/// Three significant digits, without an exponent between 0.001 and 1e6.
std::string format_number(double value);

}  // namespace unidle
