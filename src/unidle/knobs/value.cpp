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
  std::string text = std::visit([](const auto& held) { return fmt::format("{}", held); }, held_);
  // 4e-05 is a string in YAML 1.1, and so for PyYAML; 4.0e-05 is a number everywhere.
  if (const std::size_t exponent = text.find('e');
      std::holds_alternative<double>(held_) && exponent != std::string::npos && text.find('.') == std::string::npos) {
    text.insert(exponent, ".0");
  }
  return text;
}

nlohmann::json Value::to_json() const {
  return std::visit([](const auto& held) { return nlohmann::json(held); }, held_);
}

std::ostream& operator<<(std::ostream& stream, const Value& value) { return stream << value.to_text(); }

}  // namespace unidle::knobs
