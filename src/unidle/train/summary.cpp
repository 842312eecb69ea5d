#include "unidle/train/summary.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "unidle/base/json.h"
#include "unidle/base/units.h"

namespace unidle::train {

nlohmann::json typed_value(const Setting& setting, const std::string& text) {
  switch (setting.type) {
    case SettingType::kBool: return text == "true";
    case SettingType::kInt: return std::strtoll(text.c_str(), nullptr, 10);
    case SettingType::kReal: return std::strtod(text.c_str(), nullptr);
    case SettingType::kText:
    case SettingType::kChoice: break;
  }
  return text;
}

namespace {

nlohmann::json or_null(const std::optional<double>& value) { return value ? nlohmann::json(*value) : nlohmann::json(); }

std::string loss_line(const Summary& summary, Language language) {
  return summary.loss_first && summary.loss_last
             ? translate(language, "loss {} -> {}", format_number(*summary.loss_first),
                         format_number(*summary.loss_last))
             : std::string(translate(language, "no loss: nothing was left to train"));
}

}  // namespace

std::string to_json(const Summary& summary) {
  nlohmann::ordered_json effective = nlohmann::ordered_json::object();
  for (const Setting& setting : all_settings()) {
    if (const auto found = summary.effective.find(std::string(setting.name)); found != summary.effective.end()) {
      effective[found->first] = typed_value(setting, found->second);
    }
  }
  nlohmann::ordered_json document = {{"workload", summary.workload},
                                     {"device", summary.device},
                                     {"config", summary.config},
                                     {"samples_per_s", summary.samples_per_s},
                                     {"end_to_end_samples_per_s", summary.end_to_end_samples_per_s},
                                     {"steps", summary.steps},
                                     {"samples", summary.samples},
                                     {"seconds", summary.seconds},
                                     {"loss_first", or_null(summary.loss_first)},
                                     {"loss_last", or_null(summary.loss_last)},
                                     {"metric", summary.metric},
                                     {"effective", effective}};
  if (summary.skipped_steps > 0) {
    document["skipped_steps"] = summary.skipped_steps;
  }
  return json_text(document, -1);
}

std::string to_text(const Summary& summary, Language language) {
  std::vector<std::string> lines = {
      translate(language, "{} samples in {} steps, {}", summary.samples, summary.steps,
                format_seconds(summary.seconds)),
      translate(language, "{} samples/s in the loop, {} samples/s with validation and checkpoints",
                format_number(summary.samples_per_s), format_number(summary.end_to_end_samples_per_s)),
      loss_line(summary, language)};
  if (summary.skipped_steps > 0) {
    lines.push_back(translate(language, "{} steps left out: their gradients were not finite", summary.skipped_steps));
  }
  std::string text = translate(language, "{} on {}, {}", summary.workload, summary.device, summary.config) +
                     (summary.stopped ? std::string(translate(language, " (stopped early)")) : "") + "\n";
  for (const std::string& line : lines) {
    text += "  " + line + "\n";
  }
  for (const auto& [name, value] : summary.metric) {
    text += fmt::format("  {} {}\n", name, format_number(value));
  }
  return text;
}

}  // namespace unidle::train
