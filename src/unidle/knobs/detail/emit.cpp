#include "unidle/knobs/detail/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace unidle::knobs::detail {

namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool plain_is_safe(std::string_view value, bool in_flow) {
  if (value.empty() || has_control(value) || value.front() == ' ' || value.back() == ' ' || value.back() == ':') {
    return false;
  }
  if (std::string_view("!&*|>%@`\"'#{}[],").find(value.front()) != std::string_view::npos) {
    return false;
  }
  const bool may_be_indicator = value.front() == '-' || value.front() == '?' || value.front() == ':';
  if (may_be_indicator && (value.size() == 1 || value[1] == ' ')) {
    return false;
  }
  if (value.find(": ") != std::string_view::npos || value.find(" #") != std::string_view::npos || value == "---") {
    return false;
  }
  return !in_flow || value.find_first_of(",[]{}") == std::string_view::npos;
}

std::string double_quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    switch (c) {
      case '"': text += "\\\""; break;
      case '\\': text += "\\\\"; break;
      case '\n': text += "\\n"; break;
      case '\t': text += "\\t"; break;
      case '\r': text += "\\r"; break;
      default:
        if (is_control(c)) {
          text += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));  // JSON and TOML have no \x
        } else {
          text += c;
        }
    }
  }
  return text + '"';
}

std::string single_quoted(std::string_view value) {
  std::string text = "'";
  for (const char c : value) {
    text += c == '\'' ? std::string("''") : std::string(1, c);
  }
  return text + "'";
}

}  // namespace

bool has_control(std::string_view value) { return std::any_of(value.begin(), value.end(), is_control); }

std::string written(std::string_view value, char quote, bool in_flow) {
  if (quote == '\'' && !has_control(value)) {
    return single_quoted(value);
  }
  if (quote == '"' || !plain_is_safe(value, in_flow)) {
    return double_quoted(value);
  }
  return std::string(value);
}

bool is_json_literal(std::string_view value) {
  if (value == "true" || value == "false" || value == "null") {
    return true;
  }
  double number = 0;
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
  // A number that overflows or underflows a double is a number too.
  return end == value.data() + value.size() && failure != std::errc::invalid_argument && std::isfinite(number);
}

}  // namespace unidle::knobs::detail
