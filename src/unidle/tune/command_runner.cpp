#include "unidle/tune/command_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/observe/observe.h"
#include "unidle/record/record.h"
#include "unidle/tune/output.h"
#include "unidle/tune/suggestions.h"

namespace unidle::tune {

namespace {

constexpr std::string_view kPlaceholder = "{config}";
/// Fewer steps than this are no measurement.
constexpr std::size_t kLeastSteps = 8;
/// This part of the steps at the start is warm-up: allocation, algorithm choice, filling queues.
constexpr double kWarmupShare = 0.25;
/// A trial that is a little slower than the first must still get through the samples that are compared.
constexpr double kComparedShare = 0.7;

double rate_of(const std::vector<record::Step>& steps) {
  const auto skip = static_cast<std::size_t>(static_cast<double>(steps.size()) * kWarmupShare);
  double samples = 0;
  for (std::size_t i = skip; i < steps.size(); ++i) {
    samples += static_cast<double>(steps[i].samples);
  }
  const record::Step& last = steps.back();
  const double time_s = seconds(last.t_ns + last.duration_ns - steps[skip].t_ns);
  return time_s > 0 ? samples / time_s : 0;
}

long long samples_of(const std::vector<record::Step>& steps) {
  long long samples = 0;
  for (const record::Step& step : steps) {
    samples += step.samples;
  }
  return samples;
}

/// Mean loss over the second half of the first `samples` samples; nothing when fewer were seen.
std::optional<double> loss_at(const std::vector<record::Step>& steps, long long samples) {
  long long seen = 0;
  double sum = 0;
  int count = 0;
  for (const record::Step& step : steps) {
    if (seen >= samples) {
      break;
    }
    if (step.loss && seen >= samples / 2) {
      sum += *step.loss;
      ++count;
    }
    seen += step.samples;
  }
  return seen >= samples && count > 0 ? std::optional(sum / count) : std::nullopt;
}

std::string replaced(std::string text, const std::string& path) {
  for (std::size_t at = text.find(kPlaceholder); at != std::string::npos; at = text.find(kPlaceholder, at)) {
    text.replace(at, kPlaceholder.size(), path);
    at += path.size();
  }
  return text;
}

}  // namespace

CommandRunner::CommandRunner(Options options)
    : options_(std::move(options)), config_(knobs::ConfigFile::load(options_.config)) {
  const bool has_place = std::any_of(options_.command.begin(), options_.command.end(), [](const std::string& word) {
    return word.find(kPlaceholder) != std::string::npos;
  });
  if (!has_place) {
    throw Error(ErrorCode::kUsage, "optimize", "the command has no {config}",
                "write {config} where the command takes its configuration file");
  }
}

TrialResult CommandRunner::run(const Settings& changes, std::stop_token stop) {
  const std::filesystem::path folder = options_.scratch / fmt::format("trial-{}", ++trials_);
  knobs::ConfigFile config = config_;
  for (const auto& [knob, value] : changes) {
    config.set(knob, value);
  }
  make_folders(folder);
  const std::filesystem::path file = folder / options_.config.filename();
  write_file_atomic(file, config.text());

  observe::Options run;
  for (const std::string& word : options_.command) {
    run.argv.push_back(replaced(word, file.string()));
  }
  run.record = folder / "record";
  run.quiet = true;
  run.forward_signals = false;
  run.timeout_s = options_.trial_s;
  run.stop = stop;
  const std::int64_t start = system_clock().now_ns();
  const observe::Result ended = observe::run(run);

  TrialResult result;
  result.seconds = seconds(system_clock().now_ns() - start);
  result.interrupted = stop.stop_requested();
  if (result.interrupted) {
    return result;
  }
  if (!ended.timed_out && !ended.status.ok()) {
    result.problem = last_words(ended.err_tail, ended.out_tail);
    return result;
  }
  const record::Reader reader(run.record);
  const std::vector<record::Step> steps = reader.steps();
  if (steps.size() < kLeastSteps) {
    result.problem = fmt::format("only {} training steps were seen in {:.0f} s", steps.size(), result.seconds);
    return result;
  }
  if (!compared_samples_) {
    compared_samples_ = static_cast<long long>(kComparedShare * static_cast<double>(samples_of(steps)));
  }
  result.ok = true;
  result.rate = rate_of(steps);
  result.loss = loss_at(steps, *compared_samples_);
  for (const record::Setting& setting : reader.settings()) {
    if (setting.source == "effective") {
      result.effective[setting.knob] = setting.value;
    }
  }
  result.suggestions = suggestions_of(diagnose::diagnose_record(run.record), options_.allow_semantic);
  // A key that this program does not read would change nothing: only what the file has is worth trying.
  std::erase_if(result.suggestions, [&](const Suggestion& suggestion) {
    return std::any_of(suggestion.changes.begin(), suggestion.changes.end(),
                       [&](const auto& change) { return config_.find(change.first) == nullptr; });
  });
  return result;
}

}  // namespace unidle::tune
