#include "unidle/report/setting_value.h"

#include <cctype>
#include <cstdlib>
#include <optional>
#include <string>

namespace unidle::report {

namespace {

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '"' && c != '\'' && c != ' ') {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  if (out == "true" || out == "yes" || out == "on") {
    return "true";
  }
  if (out == "false" || out == "no" || out == "off" || out == "none" || out == "null") {
    return "false";
  }
  return out;
}

std::optional<double> number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' ? std::optional(value) : std::nullopt;
}

}  // namespace

bool same_value(std::string_view a, std::string_view b) {
  const std::string plain_a = plain(a);
  const std::string plain_b = plain(b);
  if (plain_a == plain_b) {
    return true;
  }
  const auto number_a = number(plain_a);
  const auto number_b = number(plain_b);
  return number_a && number_b && *number_a == *number_b;
}

}  // namespace unidle::report
