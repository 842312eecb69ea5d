#include "unidle/report/slowdown.h"

#include <algorithm>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/base/shell.h"
#include "unidle/base/units.h"
#include "unidle/record/record.h"

namespace unidle::report {

namespace {

/// Runs of one program on a shared machine differ by this much without a cause. Own choice.
constexpr double kTenth = 0.10;
constexpr std::size_t kMostRuns = 3;
/// Records that are opened to find them; a folder may hold thousands.
constexpr std::size_t kMostLooked = 20;
/// With fewer steps the rate still depends on the first ones (docs/benchmarks.md).
constexpr std::size_t kFewestForARate = 40;

bool is_fit(const Summary& run) {
  return run.throughput.training && run.throughput.steps >= kFewestForARate && !run.rough;
}

bool is_slower(const Summary& before, const Summary& now) {
  const Rate& a = *before.throughput.training;
  const Rate& b = *now.throughput.training;
  const auto ratio = experiment::ratio_of({{{a.value, a.draws}, {b.value, b.draws}}});
  return experiment::judge_speed(ratio, kTenth) == experiment::SpeedChange::kRegression;
}

std::string setting_words(const SettingDifference& setting) {
  const auto value = [](const std::optional<std::string>& effective, const std::optional<std::string>& configured) {
    return effective ? *effective : configured.value_or("-");
  };
  return setting.knob + " " + value(setting.effective_a, setting.configured_a) + " -> " +
         value(setting.effective_b, setting.configured_b);
}

/// What must be equal for two runs to be comparable without a word: the command, its folder and the machine.
struct Circumstances {
  nlohmann::json command, folder;
  std::vector<std::string> gpus;  // their names: another GPU of the kind is as good
  std::string cpu;

  explicit Circumstances(const record::Reader& reader)
      : command(reader.meta(record::meta::kCommand).value_or(nullptr)),
        folder(reader.meta(record::meta::kFolder).value_or(nullptr)) {
    const nlohmann::json listed = reader.meta(record::meta::kGpus).value_or(nlohmann::json::array());
    for (std::size_t i = 0; listed.is_array() && i < listed.size(); ++i) {
      gpus.push_back(text_in(listed[i], "name"));
    }
    const auto host = reader.meta(record::meta::kHost);
    cpu = host ? text_in(*host, "cpu_model") : "";
  }
  bool operator==(const Circumstances&) const = default;
};

/// Walks the folder of runs back in time.
class EarlierOf {
 public:
  explicit EarlierOf(const record::Reader& record)
      : folders_(record::earlier_runs(record.folder())),
        own_(record),
        started_(record.meta(record::meta::kStartedUtc).value_or(nullptr)) {}

  std::optional<RunData> next() {
    while (at_ < folders_.size() && at_ < kMostLooked) {
      try {
        const record::Reader reader(folders_[at_++]);
        const nlohmann::json started = reader.meta(record::meta::kStartedUtc).value_or(nullptr);
        const bool search = reader.meta("kind") == "optimize";
        if (!search && started.is_string() && started_.is_string() && started < started_ &&
            Circumstances(reader) == own_) {
          return account::load_run(reader);
        }
      } catch (const Error&) {
        continue;  // a damaged record of another run is no trouble of this one
      }
    }
    return std::nullopt;
  }

 private:
  std::vector<std::filesystem::path> folders_;
  Circumstances own_;
  nlohmann::json started_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<Slowdown> slowdown_of(const RunData& run, const EarlierRuns& next) {
  const Summary own = summarise(run, account::account_of(run), 1);
  if (!is_fit(own)) {
    return std::nullopt;
  }
  Slowdown slowdown;
  slowdown.now = own.throughput.training->value;
  slowdown.own = run.name;
  while (slowdown.before.size() < kMostRuns) {
    const std::optional<RunData> before = next();
    if (!before) {
      break;
    }
    const Summary other = summarise(*before, account::account_of(*before), 2 + slowdown.before.size());
    if (!is_fit(other) || other.ranks != own.ranks) {
      continue;
    }
    if (!is_slower(other, own)) {
      return std::nullopt;
    }
    if (slowdown.before.empty()) {
      slowdown.last = before->name;
      slowdown.settings = setting_differences(*before, run);
    }
    slowdown.before.push_back(other.throughput.training->value);
  }
  return slowdown.before.empty() ? std::nullopt : std::optional(std::move(slowdown));
}

std::optional<Slowdown> slowdown_of(const std::filesystem::path& record) {
  EarlierOf earlier{record::Reader(record)};
  // The earlier run is asked for first: most records have none, and their own need not be read again.
  std::optional<RunData> first = earlier.next();
  if (!first) {
    return std::nullopt;
  }
  return slowdown_of(account::load_run(record),
                     [&] { return first ? std::exchange(first, std::nullopt) : earlier.next(); });
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
  return words +
         translator.say(" Side by side: unidle compare {} {}", shell_quoted(slowdown.last), shell_quoted(slowdown.own));
}

}  // namespace unidle::report
