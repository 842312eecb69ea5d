#include "unidle/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "unidle/base/numbers.h"

namespace unidle {

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_flops(double operations) {
  static constexpr std::array<const char*, 6> kUnits = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
  std::size_t unit = 0;
  while (operations >= 1000 && unit + 1 < kUnits.size()) {
    operations /= 1000;
    ++unit;
  }
  return fmt::format("{} {}", format_number(operations), kUnits[unit]);
}

std::string format_seconds(double seconds) {
  const double magnitude = std::abs(seconds);
  if (magnitude < 1e-3) {
    return fmt::format("{:.1f} us", seconds * 1e6);
  }
  if (magnitude < 1) {
    return fmt::format("{:.1f} ms", seconds * 1e3);
  }
  if (magnitude < 60) {
    return fmt::format("{:.1f} s", seconds);
  }
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (magnitude < 3600) {
    return fmt::format("{} min {} s", whole / 60, whole % 60);
  }
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::optional<double> parse_seconds(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto value = parse_number<double>(text.substr(0, digits));
  const std::string_view unit = text.substr(digits);
  const double factor = unit.empty() || unit == "s"    ? 1
                        : unit == "m" || unit == "min" ? 60
                        : unit == "h"                  ? 3600
                        : unit == "d"                  ? 86400
                                                       : 0;
  if (!value || *value <= 0 || factor == 0) {
    return std::nullopt;
  }
  return *value * factor;
}

std::int64_t nanoseconds(double seconds) {
  constexpr double kCentury_s = 100 * 365.25 * 86400;
  return std::isnan(seconds) ? 0 : static_cast<std::int64_t>(std::clamp(seconds, -kCentury_s, kCentury_s) * 1e9);
}

std::string format_share(double share) {
  const double percent = share * 100;
  return std::abs(percent) < 10 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

std::string format_count(std::uint64_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string format_number(double value) {
  if (std::isnan(value)) {
    return "nan";  // do not print its sign
  }
  const double magnitude = std::abs(value);
  if (magnitude != 0 && (magnitude < 1e-3 || magnitude >= 1e6)) {
    return fmt::format("{:.3g}", value);
  }
  if (magnitude >= 100) {
    return fmt::format("{:.0f}", value);
  }
  return magnitude >= 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.3g}", value);
}

}  // namespace unidle
