#include "unidle/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "unidle/base/printable.h"
#include "unidle/base/secrets.h"
#include "unidle/base/utf8.h"

namespace unidle {

using nlohmann::json;

namespace {

constexpr int kDeepest = 200;

/// Counts all brackets outside strings; the parser checks whether they match.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      at += c == '\\' ? 1 : 0;
      in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    depth += c == '[' || c == '{' ? 1 : 0;
    depth -= c == ']' || c == '}' ? 1 : 0;
    if (depth > kDeepest) {
      return true;
    }
  }
  return false;
}

/// Escapes in UTF-16, as JSON requires for code points beyond four hex digits.
std::string escaped(std::uint32_t code_point) {
  if (code_point < 0x10000) {
    return fmt::format("\\u{:04x}", code_point);
  }
  const std::uint32_t rest = code_point - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10U), 0xDC00 + (rest & 0x3FFU));
}

/// Escapes invisible characters in the output of dump().
std::string without_unseen(std::string dumped) {
  if (std::all_of(dumped.begin(), dumped.end(), [](char c) { return static_cast<unsigned char>(c) < 0x7F; })) {
    return dumped;
  }
  std::string text;
  text.reserve(dumped.size());
  for (std::string_view rest = dumped; !rest.empty();) {
    const CodePoint point = first_code_point(rest);
    const std::size_t bytes = std::max<std::size_t>(point.bytes, 1);
    // Only indentation contains characters below a blank: dump() has escaped the others.
    if (point.value >= 0x7F && is_interpreted(point.value)) {
      text += escaped(point.value);
    } else {
      text += rest.substr(0, bytes);
    }
    rest.remove_prefix(bytes);
  }
  return text;
}

/// nullptr if there is no such key.
const json* value_in(const json& object, std::string_view key) {
  if (!object.is_object()) {
    return nullptr;
  }
  const auto found = object.find(key);
  return found != object.end() ? &*found : nullptr;
}

}  // namespace

json parse_json(std::string_view text) {
  return too_deep(text) ? json(json::value_t::discarded) : json::parse(text, nullptr, false);
}

std::string json_text(const json& document, int indent) {
  return without_unseen(document.dump(indent, ' ', false, json::error_handler_t::replace));
}

std::string json_text(const nlohmann::ordered_json& document, int indent) {
  return without_unseen(document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string text_in(const json& object, std::string_view key) {
  const json* value = value_in(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<double> number_in(const json& object, std::string_view key) {
  const json* value = value_in(object, key);
  const bool finite = value != nullptr && value->is_number() && std::isfinite(value->get<double>());
  return finite ? std::optional(value->get<double>()) : std::nullopt;
}

std::optional<std::int64_t> whole_in(const json& object, std::string_view key) {
  constexpr double kMost = 9e18;  // below 2^63
  const auto value = number_in(object, key);
  return value && std::abs(*value) < kMost ? std::optional<std::int64_t>(std::llround(*value)) : std::nullopt;
}

std::optional<bool> flag_in(const json& object, std::string_view key) {
  const json* value = value_in(object, key);
  return value != nullptr && value->is_boolean() ? std::optional(value->get<bool>()) : std::nullopt;
}

std::string plain_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value, -1);
}

void mask_secrets(json& value) {
  if (value.is_string()) {
    value = mask_secrets(std::string_view(value.get_ref<const std::string&>()));
  } else if (value.is_array() && std::all_of(value.begin(), value.end(), [](const json& e) { return e.is_string(); })) {
    value = mask_secrets(value.get<std::vector<std::string>>());
  } else if (value.is_array()) {
    for (json& element : value) {
      mask_secrets(element);
    }
  } else if (value.is_object()) {
    for (const auto& [key, element] : value.items()) {
      const bool named = element.is_string() && names_secret(key) && !element.get_ref<const std::string&>().empty();
      if (named) {
        element = kMasked;
      } else {
        mask_secrets(element);
      }
    }
  }
}

}  // namespace unidle
