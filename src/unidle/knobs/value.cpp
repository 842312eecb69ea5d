#include "unidle/knobs/value.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

namespace unidle::knobs {

std::optional<long long> Value::integer() const {
  const auto* whole = std::get_if<long long>(&held_);
  return whole == nullptr ? std::nullopt : std::optional(*whole);
}

std::optional<double> Value::number() const {
  if (const auto whole = integer()) {
    return static_cast<double>(*whole);
  }
  const auto* number = std::get_if<double>(&held_);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::string Value::to_text() const {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, held_);
}

nlohmann::json Value::to_json() const {
  return std::visit([](const auto& held) { return nlohmann::json(held); }, held_);
}

std::ostream& operator<<(std::ostream& stream, const Value& value) { return stream << value.to_text(); }

}  // namespace unidle::knobs
