// Reads and writes the knobs that a configuration sets.
#pragma once

#include <initializer_list>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unidle/knobs/config_file.h"
#include "unidle/knobs/knob.h"

namespace unidle::knobs {

/// Knobs and their values, each of its knob's type; without knobs that are not set.
class Settings {
 public:
  using Map = std::map<std::string, Value, std::less<>>;
  using value_type = Map::value_type;
  using const_iterator = Map::const_iterator;
  using iterator = const_iterator;

  Settings() = default;
  Settings(std::initializer_list<value_type> settings);

  /// Throws kInput when the knob does not exist, or `value` is not of its type.
  void set(const std::string& knob, Value value);
  void set(const Settings& changes);
  void erase(std::string_view knob);
  template <typename Predicate>
  void erase_if(Predicate predicate) {
    std::erase_if(values_, predicate);
  }

  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  const_iterator begin() const { return values_.begin(); }
  const_iterator end() const { return values_.end(); }
  std::set<std::string> names() const;

  bool contains(std::string_view knob) const { return values_.contains(knob); }
  /// nullptr if the knob is not set.
  const Value* find(std::string_view knob) const;
  /// REQUIRES: contains(knob).
  const Value& at(const std::string& knob) const { return values_.at(knob); }
  bool has(std::string_view knob, const Value& value) const;
  /// The setting, otherwise the knob's fallback; nothing if it has none.
  std::optional<Value> in_force(std::string_view knob) const;
  /// The same for a knob with an integer value; 0 if it has no fallback.
  long long integer(std::string_view knob) const;

  bool operator==(const Settings& other) const = default;

 private:
  Map values_;
};

/// Knob name to the value as text.
void to_json(nlohmann::json& json, const Settings& settings);
/// Throws like Settings::set.
Settings settings_from(const nlohmann::json& texts);

/// All knobs that `config` sets under their own names. Skips a precision.amp of true, and values that leave the choice
/// to the program. Throws kInput (subject "file:line: key", with the expected type) when a value is not of its knob's
/// type.
Settings read_settings(const ConfigFile& config);

/// The same for any program's configuration, with the names of its framework. Skips computed values and values whose
/// comment gives a reason.
Settings read_foreign_settings(const ConfigFile& config);

/// Sets the knob in `config`: under its own name if the file has that key or is a workload's, otherwise in the
/// framework's terms. Returns the paths of the edited keys. Throws kInput when the file cannot express the value.
std::vector<std::string> write_setting(ConfigFile& config, const std::string& knob, const Value& value);
bool can_write(const ConfigFile& config, const std::string& knob, const Value& value);

/// Samples per step from the settings: micro-batch times accumulation; an unset one counts as 1.
long long effective_batch(const Settings& settings);

/// `base` with `changes` applied.
Settings overlaid(Settings base, const Settings& changes);

/// Whether a changed knob is semantic.
bool is_semantic(const Settings& changes);
/// Whether no changed knob alters the arithmetic.
bool is_exact(const Settings& changes);

/// "loader.workers=2"
std::string pair_key(const std::string& knob, const Value& value);
/// "loader.workers=2 precision.amp=bf16"
std::string describe(const Settings& changes);

/// The JSON object for UNIDLE_APPLY: knob to value. "" when `settings` is empty.
std::string encode_apply(const Settings& settings);

}  // namespace unidle::knobs
