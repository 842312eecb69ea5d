#include "unidle/report/slowdown.h"

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/base/units.h"
#include "unidle/record/record.h"

namespace unidle::report {

namespace {

/// Runs of one program on a shared machine differ by this much without a cause. Own choice.
constexpr double kTenth = 0.10;
constexpr std::size_t kMostRuns = 3;
/// With fewer steps the rate still depends on the first ones (docs/benchmarks.md).
constexpr std::size_t kFewestForARate = 40;

bool is_fit(const Summary& run) {
  return run.throughput.training && run.throughput.steps >= kFewestForARate && !run.rough;
}

std::string setting_words(const SettingDifference& setting) {
  const auto value = [](const std::optional<std::string>& effective, const std::optional<std::string>& configured) {
    return effective ? *effective : configured.value_or("-");
  };
  return setting.knob + " " + value(setting.effective_a, setting.configured_a) + " -> " +
         value(setting.effective_b, setting.configured_b);
}

}  // namespace

std::optional<Slowdown> slowdown_of(const RunData& run, const std::vector<RunData>& earlier) {
  const nlohmann::json command = run.meta_value(record::meta::kCommand);
  const Summary own = summarise(run);
  if (!is_fit(own) || command.is_null()) {
    return std::nullopt;
  }
  Slowdown slowdown;
  for (const RunData& before : earlier) {
    const Summary other = summarise(before);
    if (!is_fit(other) || other.ranks != own.ranks || before.meta_value(record::meta::kCommand) != command) {
      continue;
    }
    const Comparison c = compare(before, run, kTenth);
    if (c.training != experiment::SpeedChange::kRegression || c.different_programs) {
      return std::nullopt;
    }
    if (slowdown.before.empty()) {
      slowdown.last = before.name;
      slowdown.settings = c.settings;
    }
    slowdown.before.push_back(other.throughput.training->value);
  }
  slowdown.now = own.throughput.training->value;
  return slowdown.before.empty() ? std::nullopt : std::optional(std::move(slowdown));
}

std::optional<Slowdown> slowdown_of(const std::filesystem::path& record) {
  std::vector<RunData> earlier;
  for (const std::filesystem::path& folder : record::earlier_runs(record, kMostRuns)) {
    try {
      earlier.push_back(account::load_run(folder));
    } catch (const Error&) {
      continue;  // a damaged record of another run is no trouble of this one
    }
  }
  return earlier.empty() ? std::nullopt : slowdown_of(account::load_run(record), earlier);
}

std::string in_words(const Slowdown& slowdown, const Translator& translator) {
  const auto [least, most] = std::ranges::minmax(slowdown.before);
  const std::string now = format_number(slowdown.now);
  std::string words =
      slowdown.before.size() == 1
          ? translator.say("Slower than your last run of this command: {} samples/s, {} before.", now,
                           format_number(least))
          : translator.say("Slower than your last {} runs of this command: {} samples/s, {} to {} before.",
                           slowdown.before.size(), now, format_number(least), format_number(most));
  std::string settings;
  for (const SettingDifference& setting : slowdown.settings) {
    settings += (settings.empty() ? "" : translator.word(", ")) + setting_words(setting);
  }
  words += settings.empty() ? "" : translator.say(" Settings that differ from the last one: {}.", settings);
  return words + translator.say(" Side by side: unidle compare {}", slowdown.last);
}

}  // namespace unidle::report
