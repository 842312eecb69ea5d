#include "unidle/base/json.h"

#include <nlohmann/json.hpp>

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

}  // namespace unidle
