#include "unidle/tune/trials/printed.h"

#include <nlohmann/json.hpp>

#include "unidle/base/json.h"
#include "unidle/experiment/last_line_of.h"

namespace unidle::tune {

namespace {

using nlohmann::json;

std::optional<double> number(const json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

}  // namespace

void read_summary(std::string_view output, bool with_validation, TrialResult& result) {
  const std::string_view line =
      experiment::last_line(output, [](std::string_view text) { return text.starts_with('{') && json::accept(text); });
  const json document = parse_json(line.empty() ? output : line);
  if (!document.is_object()) {
    result.problem = "the program ended without its summary";
    return;
  }
  result.step_rate = number(document, "samples_per_s");
  const std::optional<double> whole = number(document, "end_to_end_samples_per_s");
  result.rate = (with_validation && whole ? whole : result.step_rate).value_or(0);
  result.loss = number(document, "loss_last");
  if (const auto metrics = document.find("metric"); metrics != document.end() && metrics->is_object()) {
    for (const auto& [name, value] : metrics->items()) {
      if (value.is_number()) {
        result.metrics[name] = value.get<double>();
      }
    }
  }
  if (const auto effective = document.find("effective"); effective != document.end() && effective->is_object()) {
    for (const auto& [knob, value] : effective->items()) {
      result.effective[knob] = plain_text(value);
    }
  }
  result.ok = result.rate > 0;
  result.problem = result.ok ? "" : "the program measured no throughput";
}

}  // namespace unidle::tune
