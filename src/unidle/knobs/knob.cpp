#include "unidle/knobs/knob.h"

#include <algorithm>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/nearest.h"
#include "unidle/base/numbers.h"

namespace unidle::knobs {

namespace {

std::optional<Value> parse_count(std::string_view text) {
  const auto whole = parse_number<long long>(text);
  return whole && *whole >= 0 ? std::optional<Value>(*whole) : std::nullopt;  // all integer knobs are counts
}

std::optional<Value> parse_choice(const Knob& knob, const std::string& text) {
  // YAML 1.1 readers turn a plain `off` into false, and programs print it like that.
  std::string word = text == "false" ? "off" : text;
  if (word == "true" && !knob.when_true.empty()) {
    word = knob.when_true;
  }
  const bool known = std::find(knob.choices.begin(), knob.choices.end(), word) != knob.choices.end();
  return known ? std::optional<Value>(std::move(word)) : std::nullopt;
}

}  // namespace

const Knob* find_knob(std::string_view name) {
  const auto& all = all_catalogue();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Knob* knob) { return knob->name == name; });
  return found == all.end() ? nullptr : *found;
}

const Knob& knob_named(std::string_view name, const std::string& subject) {
  if (const Knob* knob = find_knob(name)) {
    return *knob;
  }
  std::vector<std::string> names;
  for (const Knob* knob : all_catalogue()) {
    names.push_back(knob->name);
  }
  throw Error(ErrorCode::kUsage, subject, "unknown knob " + std::string(name),
              nearest_or(name, names, "unidle knobs lists them"));
}

bool applies_at_run_time(std::string_view knob, const std::optional<Value>& value) {
  const Knob* known = find_knob(knob);
  return known != nullptr && known->change.at_run_time &&
         (!value || std::ranges::count(known->change.not_at_run_time, *value) == 0);
}

bool matters_on(std::string_view device, std::string_view knob) {
  const Knob* known = find_knob(knob);
  return device != "cpu" || known == nullptr || !known->gpu_only;
}

KnobClass class_of(std::string_view knob) {
  const Knob* known = find_knob(knob);
  return known == nullptr ? KnobClass::kExact : known->knob_class;
}

std::string_view to_string(ValueType type) {
  switch (type) {
    case ValueType::kBool: return "bool";
    case ValueType::kInt: return "int";
    case ValueType::kDouble: return "number";
    case ValueType::kChoice: return "choice";
  }
  return "";
}

std::string_view to_string(KnobClass knob_class) {
  switch (knob_class) {
    case KnobClass::kExact: return "exact";
    case KnobClass::kNumeric: return "numeric";
    case KnobClass::kSemantic: return "semantic";
  }
  return "";
}

std::string_view to_string(Meaning meaning) {
  switch (meaning) {
    case Meaning::kValue: return "value";
    case Meaning::kInverted: return "inverted";
    case Meaning::kGlobalBatch: return "global";
    case Meaning::kSwitch:
    case Meaning::kMeansFp16:
    case Meaning::kMeansBf16: return "switch";
    case Meaning::kOption: return "option";
    case Meaning::kFormat:
    case Meaning::kMemoryFormat:
    case Meaning::kMatmulPrecision: return "format";
    case Meaning::kOptimizerName: return "name";
  }
  return "";
}

std::optional<Value> parse_value(const Knob& knob, std::string_view text) {
  switch (knob.type) {
    case ValueType::kBool: return parse_bool(text);
    case ValueType::kInt: return parse_count(text);
    case ValueType::kDouble: return parse_number<double>(text);
    case ValueType::kChoice: return parse_choice(knob, lower(text));
  }
  return std::nullopt;
}

bool takes(const Knob& knob, const Value& value) {
  switch (knob.type) {
    case ValueType::kBool: return value.is_switch();
    case ValueType::kInt: return value.integer().value_or(-1) >= 0;
    case ValueType::kDouble: return value.number().has_value();
    case ValueType::kChoice: return value.is_word() && parse_choice(knob, value.to_text()) == value;
  }
  return false;
}

}  // namespace unidle::knobs
