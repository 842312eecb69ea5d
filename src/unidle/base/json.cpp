#include "unidle/base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unidle/base/secrets.h"

namespace unidle {

using nlohmann::json;

std::string text_in(const json& object, std::string_view key) {
  if (!object.is_object()) {
    return {};
  }
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
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
