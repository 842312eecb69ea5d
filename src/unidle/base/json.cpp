#include "unidle/base/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "unidle/base/secrets.h"

namespace unidle {

using nlohmann::json;

namespace {

/// nullptr where there is none.
const json* value_in(const json& object, std::string_view key) {
  if (!object.is_object()) {
    return nullptr;
  }
  const auto found = object.find(key);
  return found != object.end() ? &*found : nullptr;
}

}  // namespace

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
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace);
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
