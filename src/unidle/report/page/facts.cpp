#include "unidle/report/page/facts.h"

#include <algorithm>

#include "unidle/account/knob_readings.h"
#include "unidle/base/units.h"
#include "unidle/knobs/same_value.h"
#include "unidle/language/sentence.h"
#include "unidle/report/comparison_words.h"

namespace unidle::report {

Html settings_table(const RunData& run, const Translator& translator) {
  // Each column beyond these two is there if it says something.
  const auto readings = account::knob_readings(run);
  const auto is_ignored = [](const auto& reading) {
    const auto& [knob, row] = reading;
    return row.configured && row.effective && !knobs::in_effect(knob, *row.configured, *row.effective);
  };
  const bool configured =
      std::ranges::any_of(readings, [](const auto& each) { return each.second.configured.has_value(); });
  const bool placed =
      std::ranges::any_of(readings, [](const auto& each) { return !each.second.configured_at.empty(); });
  const bool ignored = std::ranges::any_of(readings, is_ignored);
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::vector<std::string>& cells, bool wanted, const std::string& words) {
    if (wanted) {
      cells.push_back(words);
    }
  };
  for (const auto& reading : readings) {
    const auto& [knob, row] = reading;
    if (!row.has_value()) {
      continue;
    }
    std::vector<std::string>& cells = rows.emplace_back(1, knob);
    add(cells, configured, row.configured.value_or("-"));
    add(cells, true, row.effective.value_or(translator.say("not read back")));
    add(cells, placed, row.configured_at);
    add(cells, ignored, is_ignored(reading) ? "\u26a0 " + translator.say("not in effect") : "");
  }
  std::vector<std::string> header = {translator.word("Knob")};
  add(header, configured, translator.word("Configured"));
  add(header, true, translator.say("In effect"));
  add(header, placed, translator.word("Where"));
  add(header, ignored, "");
  return table(translator.say("Settings as configured and as the live program had them"), header, rows);
}

Html facts_table(const RunData& run, const Account& account, const Translator& translator) {
  std::vector<std::vector<std::string>> rows;
  const auto text = [&](const nlohmann::json& object, const char* key) {
    return object.is_object() && object.contains(key) ? plain_text(object[key]) : std::string();
  };
  const auto add = [&](const char* label, const std::string& value) {
    if (!value.empty()) {
      rows.push_back({translator.word(label), value});
    }
  };
  const auto find = [&](std::string_view key) {
    const auto found = run.meta.find(key);
    return found == run.meta.end() ? nlohmann::json() : *found;
  };
  add("Started", run.meta_text(record::meta::kStartedUtc));
  add("Outcome", translator.word(run.meta_text(record::meta::kOutcome)));
  const auto host = find(record::meta::kHost);
  add("Host", text(host, "hostname"));
  add("CPU", text(host, "cpu_model"));
  add("CPUs allowed", account.cpus_allowed.now ? format_number(*account.cpus_allowed.now) : "");
  if (host.is_object() && host.contains("memory_bytes") && host["memory_bytes"].is_number_integer() &&
      host["memory_bytes"] > 0) {
    add("Memory", format_bytes(host["memory_bytes"].get<std::uint64_t>()));
  }
  if (const auto gpus = find(record::meta::kGpus); gpus.is_array()) {
    for (std::size_t i = 0; i < std::min<std::size_t>(gpus.size(), 16); ++i) {
      add("GPU", text(gpus[i], "name"));
    }
  }
  add("Seen through", translator.word(run.meta_text(record::meta::kTier)));
  return table(translator.say("The machine and the run"), {}, rows);
}

Html missing_html(const RunData& run, const std::optional<diagnose::Diagnosis>& diagnosis,
                  const Translator& translator) {
  std::vector<Html> missing;
  for (const std::string& sentence : run.missing) {
    missing.push_back(prose(translate_sentence(translator.language, sentence)));
  }
  Html out = list("ul", missing);
  if (diagnosis && !diagnosis->abstained.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const diagnose::Abstention& abstention : diagnosis->abstained) {
      rows.push_back({abstention.id, abstention.missing});
    }
    out += element(
        "details", element("summary", translator.say("{} rules could not be checked", rows.size())),
        table(translator.say("Rules that abstained"), {translator.word("Rule"), translator.word("Needs")}, rows));
  }
  return out;
}

}  // namespace unidle::report
