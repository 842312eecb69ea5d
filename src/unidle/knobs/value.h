// The value of a knob.
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <cstddef>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace unidle::knobs {

/// A boolean, an integer, a floating-point number or a word. parse_value() (knob.h) converts configured text,
/// reported_value() (same_value.h) what a program reported; no other code parses values.
class Value {
 public:
  Value(bool on) : held_(on) {}
  template <std::integral Whole>
  Value(Whole whole) : held_(static_cast<long long>(whole)) {}
  Value(double number) : held_(number) {}
  Value(std::string word) : held_(std::move(word)) {}
  Value(std::string_view word) : held_(std::string(word)) {}
  Value(const char* word) : held_(std::string(word)) {}
  Value(std::nullptr_t) = delete;

  bool is_switch() const { return std::holds_alternative<bool>(held_); }
  bool is_word() const { return std::holds_alternative<std::string>(held_); }
  /// Nothing if it is not an integer.
  std::optional<long long> integer() const;
  /// Nothing if it is not a number.
  std::optional<double> number() const;

  /// The text in configurations, commands and output: "true", "8", "0.0002", "bf16".
  std::string to_text() const;
  nlohmann::json to_json() const;

  bool operator==(const Value& other) const = default;

 private:
  std::variant<bool, long long, double, std::string> held_;
};

std::ostream& operator<<(std::ostream& stream, const Value& value);

}  // namespace unidle::knobs

template <>
struct fmt::formatter<unidle::knobs::Value> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const unidle::knobs::Value& value, Context& context) const {
    return fmt::formatter<std::string_view>::format(value.to_text(), context);
  }
};
