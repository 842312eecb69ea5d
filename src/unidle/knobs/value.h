// What a knob is set to.
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

/// A switch, a whole number, a number or a word. Text becomes one where it comes in, by parse_value() in knob.h; inside
/// nothing parses again.
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
  /// Nothing when it is no whole number.
  std::optional<long long> integer() const;
  /// Nothing when it is no number, whole or not.
  std::optional<double> number() const;

  /// As configurations, commands and people write it: "true", "8", "0.0002", "bf16".
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
