#include "unidle/knobs/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/base/numbers.h"
#include "unidle/knobs/apply.h"
#include "unidle/knobs/comments.h"
#include "unidle/knobs/knob.h"
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
  return std::any_of(changes.begin(), changes.end(), [&](const auto& change) {
    const Knob* knob = find_knob(change.first);
    return knob != nullptr && knob->knob_class == wanted;
  });
}

}  // namespace

Settings read_settings(const ConfigFile& config) {
  Settings settings;
  for (const Knob* knob : all_catalogue()) {
    const Scalar* scalar = config.find(knob->name);
    if (scalar == nullptr || scalar->value.empty() || scalar->value == "~" || scalar->value == "null") {
      continue;
    }
    const std::optional<std::string> value = canonical_value(*knob, scalar->value);
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
    settings[knob->name] = *value;
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
    if (!decision_on(config, recognition, knob) && can_write(config, knob, found.value)) {
      settings.try_emplace(knob, found.value);
    }
  }
  return settings;
}

std::vector<std::string> write_setting(ConfigFile& config, const std::string& knob, const std::string& value) {
  if (has_own_name(config, knob)) {
    config.set_alone(knob, value);
    return {knob};
  }
  std::vector<std::string> paths;
  for (const Edit& edit : set_knob(config, knob, value)) {
    paths.push_back(edit.path);
  }
  return paths;
}

bool can_write(const ConfigFile& config, const std::string& knob, const std::string& value) {
  return has_own_name(config, knob) || can_set(config, knob, value);
}

std::string value_of(const Settings& settings, std::string_view knob) {
  const auto found = settings.find(std::string(knob));
  if (found != settings.end()) {
    return found->second;
  }
  const Knob* known = find_knob(knob);
  return known == nullptr ? std::string() : known->fallback;
}

std::optional<long long> integer_of(const Settings& settings, std::string_view knob) {
  return parse_number<long long>(value_of(settings, knob));
}

long long effective_batch(const Settings& settings) {
  return integer_of(settings, "batch.size").value_or(1) * integer_of(settings, "batch.accumulation").value_or(1);
}

Settings overlaid(Settings base, const Settings& changes) {
  for (const auto& [knob, value] : changes) {
    base[knob] = value;
  }
  return base;
}

bool is_semantic(const Settings& changes) { return any_of_class(changes, KnobClass::kSemantic); }

bool is_exact(const Settings& changes) { return !is_semantic(changes) && !any_of_class(changes, KnobClass::kNumeric); }

std::string pair_key(const std::string& knob, const std::string& value) { return knob + "=" + value; }

std::string describe(const Settings& changes) {
  std::string text;
  for (const auto& [knob, value] : changes) {
    text += (text.empty() ? "" : " ") + knob + "=" + value;
  }
  return text;
}

}  // namespace unidle::knobs
