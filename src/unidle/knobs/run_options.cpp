#include "unidle/knobs/run_options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "unidle/base/shell.h"

namespace unidle::knobs {

nlohmann::json to_json(const RunOptions& options) {
  nlohmann::json recorded = nlohmann::json::object();
  if (options.steps) {
    recorded["steps"] = *options.steps;
  }
  if (options.timeout_s) {
    recorded["timeout_s"] = *options.timeout_s;
  }
  if (!options.applied.empty()) {
    recorded["apply"] = options.applied;
  }
  return recorded;
}

RunOptions run_options_from(const nlohmann::json& recorded) {
  RunOptions options;
  if (!recorded.is_object()) {
    return options;
  }
  if (const auto steps = recorded.find("steps"); steps != recorded.end() && steps->is_number_integer()) {
    options.steps = steps->get<std::int64_t>() > 0 ? std::optional(steps->get<std::int64_t>()) : std::nullopt;
  }
  if (const auto limit = recorded.find("timeout_s"); limit != recorded.end() && limit->is_number()) {
    options.timeout_s = limit->get<double>() > 0 ? std::optional(limit->get<double>()) : std::nullopt;
  }
  const auto applied = recorded.find("apply");
  if (applied == recorded.end() || !applied->is_object()) {
    return options;
  }
  for (const auto& [name, value] : applied->items()) {
    const Knob* knob = find_knob(name);
    const bool known = knob != nullptr && value.is_string();
    if (const auto parsed = known ? parse_value(*knob, value.get<std::string>()) : std::nullopt) {
      options.applied.set(name, *parsed);
    }
  }
  return options;
}

std::string in_words(const RunOptions& options, const std::set<std::string>& changed) {
  std::string words = options.steps ? fmt::format("--steps {} ", *options.steps) : "";
  words += options.timeout_s ? fmt::format("--timeout {} ", *options.timeout_s) : "";
  for (const auto& [knob, value] : options.applied) {
    words += changed.contains(knob) ? "" : "--apply " + shell_quoted(pair_key(knob, value)) + " ";
  }
  return words;
}

std::string with_options(const std::string& words, const std::string& command) {
  return words.empty() ? command : "unidle run " + words + "-- " + command;
}

}  // namespace unidle::knobs
