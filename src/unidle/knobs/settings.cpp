#include "unidle/knobs/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/base/numbers.h"
#include "unidle/knobs/apply.h"
#include "unidle/knobs/comments.h"
#include "unidle/knobs/recognize.h"

namespace unidle::knobs {

namespace {

std::string expectation(const Knob& knob) {
  switch (knob.type) {
    case ValueType::kBool: return "expected true or false";
    case ValueType::kInt: return "expected a whole number, 0 or more";
    case ValueType::kDouble: return "expected a number";
    case ValueType::kChoice: return fmt::format("expected one of {}", fmt::join(knob.choices, ", "));
  }
  return {};
}

bool leaves_open(const Knob& knob, const std::string& value) {
  return std::find(knob.leaves_open.begin(), knob.leaves_open.end(), value) != knob.leaves_open.end();
}

bool any_of_class(const Settings& changes, KnobClass wanted) {
  return std::ranges::any_of(changes, [&](const auto& change) { return class_of(change.first) == wanted; });
}

}  // namespace

Settings::Settings(std::initializer_list<value_type> settings) {
  for (const auto& [knob, value] : settings) {
    set(knob, value);
  }
}

void Settings::set(const std::string& knob, Value value) {
  const Knob* known = find_knob(knob);
  if (known == nullptr) {
    throw Error(ErrorCode::kInput, knob, "is not a knob", "unidle knobs lists them");
  }
  if (!takes(*known, value)) {
    throw Error(ErrorCode::kInput, knob,
                fmt::format("'{}' is not a value of this knob, {}", value, expectation(*known)));
  }
  if (known->type == ValueType::kDouble) {
    value = *value.number();
  }
  values_.insert_or_assign(knob, std::move(value));
}

void Settings::set(const Settings& changes) {
  for (const auto& [knob, value] : changes) {
    values_.insert_or_assign(knob, value);
  }
}

void Settings::erase(std::string_view knob) {
  if (const auto found = values_.find(knob); found != values_.end()) {
    values_.erase(found);
  }
}

std::set<std::string> Settings::names() const {
  std::set<std::string> names;
  for (const auto& [knob, value] : values_) {
    names.insert(knob);
  }
  return names;
}

const Value* Settings::find(std::string_view knob) const {
  const auto found = values_.find(knob);
  return found == values_.end() ? nullptr : &found->second;
}

bool Settings::has(std::string_view knob, const Value& value) const {
  const Value* set = find(knob);
  return set != nullptr && *set == value;
}

std::optional<Value> Settings::in_force(std::string_view knob) const {
  if (const Value* set = find(knob)) {
    return *set;
  }
  const Knob* known = find_knob(knob);
  return known == nullptr ? std::nullopt : known->fallback;
}

long long Settings::integer(std::string_view knob) const {
  const auto value = in_force(knob);
  return value ? value->integer().value_or(0) : 0;
}

void to_json(nlohmann::json& json, const Settings& settings) {
  json = nlohmann::json::object();
  for (const auto& [knob, value] : settings) {
    json[knob] = value.to_text();
  }
}

Settings settings_from(const nlohmann::json& texts) {
  Settings settings;
  for (const auto& [name, text] : texts.items()) {
    const Knob* knob = find_knob(name);
    const std::string said = text.get<std::string>();
    settings.set(name, knob == nullptr ? said : parse_value(*knob, said).value_or(said));
  }
  return settings;
}

Settings read_settings(const ConfigFile& config) {
  Settings settings;
  for (const Knob* knob : all_catalogue()) {
    const Scalar* scalar = config.find(knob->name);
    if (scalar == nullptr || scalar->value.empty() || scalar->value == "~" || scalar->value == "null") {
      continue;
    }
    const std::optional<Value> value = parse_value(*knob, scalar->value);
    if (!value && knob->name == "precision.amp" && parse_bool(scalar->value)) {
      continue;  // does not name a precision: programs leave it off, and a diagnosis reports it
    }
    if (!value && leaves_open(*knob, scalar->value)) {
      continue;
    }
    if (!value) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", config.name(), scalar->line, knob->name),
                  fmt::format("'{}' is not a value of this knob, {}", scalar->value, expectation(*knob)));
    }
    settings.set(knob->name, *value);
  }
  return settings;
}

namespace {

/// Whether the file is a workload's or has the key.
bool has_own_name(const ConfigFile& config, const std::string& knob) {
  return config.find(knob) != nullptr || config.find("workload") != nullptr;
}

}  // namespace

Settings read_foreign_settings(const ConfigFile& config) {
  Settings settings = read_settings(config);
  const Recognition recognition = recognize(config);
  for (const auto& [knob, found] : configured(recognition)) {
    if (!settings.contains(knob) && !decision_on(config, recognition, knob) && can_write(config, knob, found.value)) {
      settings.set(knob, found.value);
    }
  }
  return settings;
}

std::vector<std::string> write_setting(ConfigFile& config, const std::string& knob, const Value& value) {
  if (has_own_name(config, knob)) {
    config.set_alone(knob, value.to_text());
    return {knob};
  }
  std::vector<std::string> paths;
  for (const Edit& edit : set_knob(config, knob, value)) {
    paths.push_back(edit.path);
  }
  return paths;
}

bool can_write(const ConfigFile& config, const std::string& knob, const Value& value) {
  return has_own_name(config, knob) || can_set(config, knob, value);
}

long long effective_batch(const Settings& settings) {
  return settings.integer("batch.size") * settings.integer("batch.accumulation");
}

Settings overlaid(Settings base, const Settings& changes) {
  base.set(changes);
  return base;
}

bool is_semantic(const Settings& changes) { return any_of_class(changes, KnobClass::kSemantic); }

bool is_exact(const Settings& changes) { return !is_semantic(changes) && !any_of_class(changes, KnobClass::kNumeric); }

std::string pair_key(const std::string& knob, const Value& value) { return knob + "=" + value.to_text(); }

std::string describe(const Settings& changes) {
  std::string text;
  for (const auto& [knob, value] : changes) {
    text += (text.empty() ? "" : " ") + pair_key(knob, value);
  }
  return text;
}

std::string encode_apply(const Settings& settings) {
  if (settings.empty()) {
    return {};
  }
  nlohmann::json wanted = nlohmann::json::object();
  for (const auto& [knob, value] : settings) {
    wanted[knob] = value.to_json();
  }
  return json_text(wanted, -1);
}

}  // namespace unidle::knobs
