#include "unidle/train/config.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "unidle/base/error.h"
#include "unidle/base/numbers.h"
#include "unidle/base/shell.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/recognize.h"

namespace unidle::train {

namespace {

constexpr double kNoMaximum = std::numeric_limits<double>::max();

/// The text in the form that the getters read, or nothing when it is not of the setting's type.
std::optional<std::string> canonical(const Setting& setting, const std::string& raw) {
  switch (setting.type) {
    case SettingType::kText: return raw;
    case SettingType::kBool: {
      const auto value = parse_bool(raw);
      return value ? std::optional<std::string>(*value ? "true" : "false") : std::nullopt;
    }
    case SettingType::kChoice:
      for (const std::string_view choice : setting.choices) {
        if (raw == choice) {
          return raw;
        }
      }
      return std::nullopt;
    case SettingType::kInt: {
      const auto number = parse_number<std::int64_t>(raw);
      const bool fits =
          number && static_cast<double>(*number) >= setting.minimum && static_cast<double>(*number) <= setting.maximum;
      return fits ? std::optional(std::to_string(*number)) : std::nullopt;
    }
    case SettingType::kReal: {
      const auto number = parse_number<double>(raw);
      return number && *number >= setting.minimum ? std::optional(raw) : std::nullopt;
    }
  }
  return std::nullopt;
}

/// The setting that another framework calls by that name: learning_rate, num_workers.
const Setting* setting_elsewhere(const std::string& key, const std::string& raw) {
  try {
    const auto found = knobs::recognize(knobs::ConfigFile::from_text(key + ": " + raw + "\n", "key.yaml"));
    return found.knobs.empty() ? nullptr : find_setting(found.knobs.front().knob);
  } catch (const Error&) {  // not valid YAML
    return nullptr;
  }
}

/// Suggests the key that was probably meant, otherwise the keys of its section.
std::string hint_for_unknown(const std::string& key, const std::string& raw) {
  if (const std::string_view closest = closest_setting(key); !closest.empty()) {
    return fmt::format("did you mean {}?", closest);
  }
  if (const Setting* setting = setting_elsewhere(key, raw)) {
    return fmt::format("here it is {}", setting->name);
  }
  const std::string section = key.substr(0, key.find('.'));
  std::string keys;
  for (const Setting& setting : all_settings()) {
    if (setting.name.starts_with(section + ".")) {
      keys += fmt::format("{}{}", keys.empty() ? "" : ", ", setting.name.substr(section.size() + 1));
    }
  }
  return keys.empty() ? "the keys are listed in docs/training.md" : fmt::format("{} has {}", section, keys);
}

}  // namespace

std::string describe_expected(const Setting& setting) {
  switch (setting.type) {
    case SettingType::kText: return "a text";
    case SettingType::kBool: return "true or false";
    case SettingType::kInt:
      return setting.maximum < kNoMaximum ? fmt::format("a whole number, {} to {}", setting.minimum, setting.maximum)
                                          : fmt::format("a whole number, {} or more", setting.minimum);
    case SettingType::kReal: return fmt::format("a number, {} or more", setting.minimum);
    case SettingType::kChoice: break;
  }
  std::string list(setting.choices.front());
  for (std::size_t i = 1; i < setting.choices.size(); ++i) {
    list += fmt::format("{}{}", i + 1 == setting.choices.size() ? " or " : ", ", setting.choices[i]);
  }
  return list;
}

void Config::assign(const std::string& key, const std::string& raw, const std::string& subject,
                    const std::string& location) {
  const Setting* setting = find_setting(key);
  if (setting == nullptr) {
    throw Error(ErrorCode::kInput, subject, fmt::format("unknown key '{}'", key), hint_for_unknown(key, raw));
  }
  const std::optional<std::string> value = canonical(*setting, raw);
  if (!value) {
    throw Error(ErrorCode::kInput, fmt::format("{}: {}", subject, key),
                fmt::format("expected {}, found '{}'", describe_expected(*setting), raw));
  }
  values_[key] = {*value, location};
}

Config Config::load(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  const knobs::ConfigFile file = knobs::ConfigFile::load(path);
  return from_text(file.text(), path.string(), overrides);
}

Config Config::from_text(std::string text, std::string name, const std::vector<std::string>& overrides) {
  Config config;
  config.name_ = std::move(name);
  config.overrides_ = overrides;
  for (const Setting& setting : all_settings()) {
    config.values_[std::string(setting.name)] = {std::string(setting.fallback), ""};
  }
  const knobs::ConfigFile file = knobs::ConfigFile::from_text(std::move(text), config.name_);
  for (const knobs::Scalar& scalar : file.scalars()) {
    const std::string location = fmt::format("{}:{}", config.name_, scalar.line);
    if (const auto set = config.values_.find(scalar.path);
        set != config.values_.end() && !set->second.location.empty()) {
      throw Error(ErrorCode::kInput, location,
                  fmt::format("'{}' is set here and at {}", scalar.path, set->second.location), "keep one of the two");
    }
    config.assign(scalar.path, scalar.value, location, location);
  }
  for (const std::string& pair : overrides) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorCode::kUsage, pair, "expected KEY=VALUE");
    }
    config.assign(pair.substr(0, equals), pair.substr(equals + 1), pair, std::string(kCommandLine));
  }
  if (config.text("workload").empty()) {
    throw Error(ErrorCode::kInput, config.name_, "key 'workload' is missing", "add e.g. workload: superres");
  }
  return config;
}

std::string Config::prepare_command() const {
  std::vector<std::string> words = {"unidle-train", name_, "--prepare"};
  words.insert(words.end(), overrides_.begin(), overrides_.end());
  return shell_joined(words);
}

const Config::Value& Config::at(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw Error(ErrorCode::kInternal, std::string(name), "unknown setting");
  }
  return found->second;
}

const std::string& Config::text(std::string_view name) const { return at(name).text; }
bool Config::flag(std::string_view name) const { return at(name).text == "true"; }
std::int64_t Config::integer(std::string_view name) const { return parse_number<std::int64_t>(text(name)).value(); }
double Config::real(std::string_view name) const { return parse_number<double>(text(name)).value(); }
void Config::choose(std::string_view name, std::string value) {
  Value& setting = values_.at(std::string(name));
  setting.written = setting.text;
  setting.text = std::move(value);
}
const std::string& Config::written(std::string_view name) const {
  const Value& setting = at(name);
  return setting.written.empty() ? setting.text : setting.written;
}
const std::string& Config::location(std::string_view name) const { return at(name).location; }

}  // namespace unidle::train
