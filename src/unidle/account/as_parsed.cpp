#include "unidle/account/as_parsed.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "unidle/base/json.h"
#include "unidle/base/numbers.h"
#include "unidle/knobs/same_value.h"
#include "unidle/record/note_types.h"

namespace unidle::account {

namespace {

using nlohmann::json;

struct Parsed {
  std::string option;  // as typed on the command line
  std::optional<std::string> value;
  bool changed = false;  // by the program, after parsing
};

/// Arguments by each of their names. Ranks report the same; if processes differ, the argument counts as changed.
class Arguments {
 public:
  explicit Arguments(const std::vector<record::Note>& notes) {
    for (const record::Note& note : notes) {
      if (record::is_of(note, record::NoteType::kArguments)) {
        told_ = true;
        const record::Note*& newest = newest_[note.process];
        newest = newest == nullptr || note.t_ns >= newest->t_ns ? &note : newest;
      }
    }
    for (const auto& [process, note] : newest_) {
      read(note->body);
    }
  }

  bool told() const { return told_; }
  const Parsed* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &found->second;
  }

 private:
  void read(const json& body) {
    const json list = body.value("arguments", json::array());
    for (const json& each : list.is_array() ? list : json::array()) {
      if (!each.is_object() || !each.contains("names") || !each["names"].is_array()) {
        continue;
      }
      Parsed parsed;
      parsed.changed = each.value("changed", json()) == true;
      parsed.value = text_in(each, "value").empty() ? std::nullopt : std::optional(text_in(each, "value"));
      parsed.option = text_in(each, "option");
      for (const json& name : each["names"]) {
        if (name.is_string()) {
          add(name.get<std::string>(), parsed);
        }
      }
    }
  }

  void add(const std::string& name, const Parsed& parsed) {
    const auto [known, added] = by_name_.try_emplace(name, parsed);
    known->second.changed = known->second.changed || parsed.changed || known->second.value != parsed.value;
  }

  bool told_ = false;
  std::map<std::int64_t, const record::Note*> newest_;
  std::map<std::string, Parsed> by_name_;
};

/// True for values that mean the same to a knob and to a parser; for others ("16-mixed") this is unknown.
bool is_plain(const std::string& value) {
  static const std::set<std::string> kPlain = {"true",    "false",           "bf16",        "fp16", "fp32",
                                               "default", "reduce-overhead", "max-autotune"};
  return parse_number<double>(value).has_value() || kPlain.contains(knobs::plain_value(value));
}

/// What a parser's value is to the knob: "bfloat16" is bf16, and "float32" switches mixed precision off.
std::string value_of(const std::string& knob, const std::string& parsed) {
  if (knob != "precision.amp") {
    return parsed;
  }
  const std::string plain = knobs::plain_value(parsed);
  return plain == "fp32" || plain == "false" ? "off" : plain;
}

/// The configured value of a knob that an argument sets; nothing when it cannot be determined.
std::optional<record::Setting> resolved(const record::Setting& argument, const record::Setting* configured,
                                        const Arguments& arguments) {
  const Parsed* parsed = arguments.find(argument.location);
  const auto as_it_stands = [&] { return configured == nullptr ? std::nullopt : std::optional(*configured); };
  if (parsed == nullptr) {
    // The parser with this default was never called.
    return argument.value == "default" && arguments.told() ? std::nullopt : as_it_stands();
  }
  if (parsed->changed || !parsed->value) {
    return std::nullopt;
  }
  if (configured != nullptr && knobs::in_effect(configured->knob, configured->value, *parsed->value)) {
    return *configured;
  }
  if (argument.value == "file" || !is_plain(*parsed->value)) {
    return std::nullopt;
  }
  return record::Setting{argument.knob, value_of(argument.knob, *parsed->value), "configured", parsed->option};
}

}  // namespace

std::vector<record::Setting> as_parsed(std::vector<record::Setting> settings, const std::vector<record::Note>& notes) {
  const Arguments arguments(notes);
  std::vector<record::Setting> found;
  std::set<std::string> by_argument;
  for (const record::Setting& argument : settings) {
    if (argument.source != "argument" || !by_argument.insert(argument.knob).second) {
      continue;
    }
    const auto configured = std::find_if(settings.begin(), settings.end(), [&](const record::Setting& each) {
      return each.source == "configured" && each.knob == argument.knob;
    });
    if (auto one = resolved(argument, configured == settings.end() ? nullptr : &*configured, arguments)) {
      found.push_back(std::move(*one));
    }
  }
  for (record::Setting& setting : settings) {
    const bool replaced = setting.source == "configured" && by_argument.contains(setting.knob);
    if (setting.source != "argument" && !replaced) {
      found.push_back(std::move(setting));
    }
  }
  return found;
}

}  // namespace unidle::account
