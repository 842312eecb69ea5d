#include "unidle/tune/command_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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
/// Losses at fewer common positions than this are no comparison.
constexpr int kLeastLosses = 4;

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

/// Losses by the number of samples seen before the step. A loss that is read back long after its step is recorded as a
/// metric.
std::map<long long, double> losses_of(const record::Reader& reader, const std::vector<record::Step>& steps) {
  std::map<long long, double> losses;
  for (const record::Metric& metric : reader.metrics("loss")) {
    losses[metric.samples] = metric.value;
  }
  long long seen = 0;
  for (const record::Step& step : steps) {
    if (step.loss) {
      losses[step.samples_before.value_or(seen)] = *step.loss;
    }
    seen += step.samples;
  }
  return losses;
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

/// A program may report fewer losses in one trial than in another: they are compared where both have one.
std::optional<double> CommandRunner::comparable_loss(const std::map<long long, double>& losses) {
  if (first_losses_.empty()) {
    first_losses_ = losses;
    if (!losses.empty()) {  // its second half, where they have settled
      first_losses_.erase(first_losses_.begin(), first_losses_.lower_bound(losses.rbegin()->first / 2));
    }
  }
  double ours = 0;
  double firsts = 0;
  double all_firsts = 0;
  int common = 0;
  for (const auto& [position, loss] : first_losses_) {
    all_firsts += loss;
    if (const auto found = losses.find(position); found != losses.end()) {
      ours += found->second;
      firsts += loss;
      ++common;
    }
  }
  if (common < kLeastLosses || firsts == 0) {
    return std::nullopt;
  }
  return all_firsts / static_cast<double>(first_losses_.size()) * ours / firsts;
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
  result.ok = true;
  result.rate = rate_of(steps);
  result.loss = comparable_loss(losses_of(reader, steps));
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
