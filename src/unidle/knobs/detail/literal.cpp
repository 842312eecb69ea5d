#include "unidle/knobs/detail/literal.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "unidle/base/characters.h"

namespace unidle::knobs::detail {

namespace {

/// Parses digits of `base` with underscores between them.
std::optional<long long> digits(std::string_view text, int base) {
  std::string plain(text);
  std::erase(plain, '_');
  long long value = 0;
  const auto [end, failure] = std::from_chars(plain.data(), plain.data() + plain.size(), value, base);
  return failure == std::errc() && end == plain.data() + plain.size() && value >= 0 ? std::optional(value)
                                                                                    : std::nullopt;
}

/// 1:30 is 90.
std::optional<long long> sexagesimal(std::string_view text) {
  long long value = 0;
  for (bool first = true; !text.empty(); first = false) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto part = digits(text.substr(0, colon), 10);
    const bool fits = part && (first ? text[0] != '0' : *part < 60 && colon <= 2);
    if (!fits || value > std::numeric_limits<long long>::max() / 60 - *part) {
      return std::nullopt;
    }
    value = value * 60 + *part;
    text.remove_prefix(std::min(colon + 1, text.size()));
  }
  return value;
}

std::optional<long long> yaml_integer(std::string_view text) {
  if (text.starts_with("0b")) {
    return digits(text.substr(2), 2);
  }
  if (text.starts_with("0x")) {
    return digits(text.substr(2), 16);
  }
  if (text.size() > 1 && text[0] == '0') {
    return digits(text.substr(1), 8);
  }
  return text.find(':') != std::string_view::npos ? sexagesimal(text) : digits(text, 10);
}

std::optional<long long> other_integer(std::string_view text) {
  const char kind = text.size() > 2 && text[0] == '0' ? lower(text[1]) : '\0';
  const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
  return digits(base == 10 ? text : text.substr(2), base);
}

/// 1_000.5, 1e-3_0 and similar.
bool is_number_with_underscores(std::string_view text) {
  return text.find('_') != std::string_view::npos && is_digit(text.front()) && is_digit(text.back()) &&
         text.find_first_not_of("0123456789_.eE+-") == std::string_view::npos;
}

}  // namespace

std::string value_of(Format format, const Scalar& scalar) {
  std::string_view text = scalar.value;
  const bool read_as_text = scalar.quoted || format == Format::kJson;
  const std::string_view sign = text.starts_with('-') ? "-" : "";
  text.remove_prefix(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  if (read_as_text || text.empty() || !is_digit(text.front())) {
    return scalar.value;
  }
  if (const auto whole = format == Format::kYaml ? yaml_integer(text) : other_integer(text)) {
    return std::string(sign) + std::to_string(*whole);
  }
  if (is_number_with_underscores(text)) {
    std::string plain(text);
    std::erase(plain, '_');
    return std::string(sign) + plain;
  }
  return scalar.value;
}

}  // namespace unidle::knobs::detail
