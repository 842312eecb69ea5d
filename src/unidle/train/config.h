// A training run's configuration: one YAML file whose key paths are knob names, plus KEY=VALUE overrides.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unidle::train {

enum class SettingType { kText, kBool, kInt, kReal, kChoice };

/// One accepted key.
struct Setting {
  std::string_view name;
  SettingType type;
  std::string_view fallback;  // canonical text; empty: no value
  double minimum;             // of kInt and kReal, inclusive
  std::vector<std::string_view> choices;
  std::string_view explanation;
  double maximum = std::numeric_limits<double>::max();  // of kInt, inclusive
};

/// Every key that a configuration may have, in the manual's order.
const std::vector<Setting>& all_settings();
/// Adds the keys of a loaded workload. Call before the first configuration is read, from one thread. Throws kInput for
/// a duplicate key and for a default that is not of its type.
void add_settings(const std::vector<Setting>& more);
/// nullptr when there is no such key.
const Setting* find_setting(std::string_view name);
/// The accepted key whose spelling is closest to `name`; empty when none is close.
std::string_view closest_setting(std::string_view name);
/// "a whole number, 0 or more", "true or false", "off, fp16 or bf16"
std::string describe_expected(const Setting& setting);

/// Complete and validated: every setting has a value of its type. Thread-safe except for choose().
class Config {
 public:
  /// Throws kInput with subject "file:line: key" (or "KEY=VALUE") for an unknown key and for a value that is not of the
  /// key's type; the message says what was expected.
  static Config load(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});
  static Config from_text(std::string text, std::string name, const std::vector<std::string>& overrides = {});

  /// REQUIRES: `name` is a setting of that type; anything else is kInternal.
  const std::string& text(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;

  /// Where the value was set: "file:line", kCommandLine, or "" for the default.
  const std::string& location(std::string_view name) const;
  static constexpr std::string_view kCommandLine = "command line";
  /// Sets the value in force of an open setting; the written value and its place are kept.
  void choose(std::string_view name, std::string value);
  /// The value as written, or the default.
  const std::string& written(std::string_view name) const;
  /// The file's name as given.
  const std::string& name() const { return name_; }
  /// The command that prepares this configuration's data, including the overrides.
  std::string prepare_command() const;

 private:
  struct Value {
    std::string text;
    std::string location;
    std::string written = {};  // when another value is in force; otherwise empty
  };
  const Value& at(std::string_view name) const;
  void assign(const std::string& key, const std::string& raw, const std::string& subject, const std::string& location);

  std::string name_;
  std::vector<std::string> overrides_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace unidle::train
