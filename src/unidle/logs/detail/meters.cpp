#include "unidle/logs/detail/meters.h"

#include <algorithm>
#include <array>

#include "unidle/base/characters.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/detail/progress.h"

namespace unidle::logs::detail {

namespace {

/// Consumes a unit after a key, "(ms)", "[s]", "(t)", " in s" or "_ms"; returns its seconds.
double take_unit_of_key(std::string_view& text) {
  struct Unit {
    std::string_view text;
    double seconds;
  };
  static constexpr std::array kUnits = {
      Unit{" (ms)", 1e-3},  Unit{"(ms)", 1e-3}, Unit{" [ms]", 1e-3}, Unit{"[ms]", 1e-3}, Unit{"_ms", 1e-3},
      Unit{" in ms", 1e-3}, Unit{" (s)", 1},    Unit{"(s)", 1},      Unit{" [s]", 1},    Unit{"[s]", 1},
      Unit{" (t)", 1},      Unit{"(t)", 1},     Unit{" in s", 1},    Unit{"_sec", 1},    Unit{"_s", 1},
  };
  const auto* unit =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& one) { return text.starts_with(one.text); });
  if (unit == kUnits.end()) {
    return 1;
  }
  text.remove_prefix(unit->text.size());
  return unit->seconds;
}

/// ", 561.4/s" after a time.
std::optional<double> take_rate(std::string_view& text) {
  std::string_view rest = text;
  if (!rest.starts_with(",")) {
    return std::nullopt;
  }
  rest.remove_prefix(1);
  skip_blanks(rest);
  const auto rate = take_number(rest);
  if (!rate || *rate <= 0 || !rest.starts_with("/s") || (rest.size() > 2 && (is_word(rest[2]) || rest[2] == '/'))) {
    return std::nullopt;
  }
  rest.remove_prefix(2);
  text = rest;
  return rate;
}

/// A number with its unit; nothing for "0:10:00".
std::optional<double> take_seconds(std::string_view& text, double scale, bool& in_ms) {
  const auto value = take_number(text);
  if (!value || *value < 0 || text.starts_with(":") || text.starts_with("%")) {
    return std::nullopt;
  }
  const double unit = take_unit(text);
  const double seconds = unit > 0 ? unit : scale;
  in_ms = seconds < 1;
  return *value * seconds;
}

/// Whether the rate is per device: "per GPU", "/device" and "_per_gpu" after it, or "device/" before it.
bool is_per_device(std::string_view before, std::string_view behind) {
  const auto ends = [&](std::string_view what) { return before.ends_with(what); };
  std::string start = lower(behind.substr(0, 24));
  std::replace(start.begin(), start.end(), '_', ' ');
  const auto has = [&](std::string_view what) { return start.find(what) != std::string::npos; };
  return ends("device/") || ends("gpu/") || has("per gpu") || has("per device") || has("/gpu") || has("/device") ||
         has("per rank") || has("/rank");
}

std::size_t end_of_word(std::string_view line, std::size_t at) {
  while (at < line.size() && (is_word(line[at]) || line[at] == '/')) {
    ++at;
  }
  return at;
}

bool positive(const std::optional<double>& value) { return value && *value > 0 && std::isfinite(*value); }

}  // namespace

std::optional<Meter> meter_after(std::string_view line, std::size_t end) {
  std::string_view rest = line.substr(std::min(end, line.size()));
  const double scale = take_unit_of_key(rest);
  Meter meter;
  if (skip_signs(rest) == 0) {
    return std::nullopt;
  }
  const auto value = take_seconds(rest, scale, meter.in_ms);
  if (!value) {
    return std::nullopt;
  }
  meter.value_s = *value;
  meter.samples_per_s = take_rate(rest);
  skip_blanks(rest);
  if (!rest.starts_with("(")) {
    return meter;
  }
  rest.remove_prefix(1);
  skip_blanks(rest);
  bool ignored = false;
  meter.average_s = take_seconds(rest, scale, ignored);
  return meter;
}

std::optional<double> rate_after(std::string_view line, std::size_t begin, std::size_t end, bool* per_device) {
  const std::size_t word_end = end_of_word(line, end);
  const auto value = value_after(line, word_end);
  const bool one = is_per_device(line.substr(0, begin), line.substr(end, word_end - end));
  if (!positive(value) || (one && per_device == nullptr)) {
    return std::nullopt;
  }
  if (per_device != nullptr) {
    *per_device = one;
  }
  return value;
}

std::optional<double> rate_beside(std::string_view line, std::size_t begin, std::size_t end, bool* per_device) {
  const std::size_t word_end = end_of_word(line, end);
  const std::string_view behind = line.substr(word_end);
  if (behind.starts_with(":") || behind.starts_with("=") || behind.starts_with("\"") || behind.starts_with("'")) {
    return rate_after(line, begin, end, per_device);
  }
  const auto value = value_before(line, begin);
  const bool one = is_per_device({}, line.substr(end));
  if (!positive(value) || (one && per_device == nullptr)) {
    return std::nullopt;
  }
  if (per_device != nullptr) {
    *per_device = one;
  }
  return value;
}

}  // namespace unidle::logs::detail
