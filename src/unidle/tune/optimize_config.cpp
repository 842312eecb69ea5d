// `unidle optimize CONFIG --benchmark`: trials of a workload, or of a command that takes the configuration.
#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/base/numbers.h"
#include "unidle/knobs/comments.h"
#include "unidle/tune/optimize.h"
#include "unidle/tune/trials/command_runner.h"
#include "unidle/tune/trials/trial_store.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

/// Bounds of a trial of a foreign command, whose speed is not yet known.
constexpr double kShortestTrial = 10;
constexpr double kLongestTrial = 60;

/// Throws kUsage when trials would overwrite the program's files and the user has not allowed that.
std::unique_ptr<CommandRunner> command_runner(const OptimizeOptions& options, const fs::path& scratch, double trial_s) {
  CommandRunner::Options running;
  running.command = options.command;
  running.config = fs::absolute(options.config);
  running.scratch = scratch;
  running.allow_semantic = options.allow_semantic;
  running.trial_s = trial_s;
  running.folder = fs::current_path();
  const experiment::ProtectionOptions found = experiment::ways_to_protect(running.folder, options.command, scratch);
  running.ways = found.ways;
  need_permission(found, found.ways.front(), options.may_write);
  return std::make_unique<CommandRunner>(running);
}

std::unique_ptr<EngineRunner> engine_runner(const OptimizeOptions& options, const knobs::Settings& settings,
                                            const fs::path& scratch, TrialStore& store, std::optional<TrialPlan>& plan,
                                            std::stop_token stop) {
  if (!fs::exists(options.train_program)) {
    throw Error(ErrorCode::kMissing, options.train_program.string(), "is not there, and trials need it",
                "build it with ./dev build");
  }
  auto runner = std::make_unique<EngineRunner>(EngineRunner::Options{options.train_program,
                                                                     fs::absolute(options.config), settings, scratch,
                                                                     options.allow_semantic, options.budget_s});
  if (plan = store.trial_plan(); plan) {
    runner->resume(*plan);
  } else {
    store.clear();
    plan = runner->calibrate(stop);
    store.keep(*plan);
  }
  return runner;
}

/// Identifies a search of this configuration: its text, what runs it, and the length of trials.
std::string identity_of(const OptimizeOptions& options, const knobs::ConfigFile& config, double trial_s) {
  std::vector<std::string> words = {config.name(), config.text(), options.allow_semantic ? "semantic" : ""};
  if (options.command.empty()) {
    std::error_code unknown;
    const auto changed = fs::last_write_time(options.train_program, unknown).time_since_epoch().count();
    words.insert(words.end(), {options.train_program.string(), std::to_string(changed)});
    return search_identity(words, {}, this_machine());
  }
  words.push_back(std::to_string(trial_s));
  words.insert(words.end(), options.command.begin(), options.command.end());
  return search_identity(words, fs::current_path(), this_machine());
}

/// Samples of a complete run of the engine.
long long run_samples(const knobs::ConfigFile& config) {
  const knobs::Scalar* key = config.find("train.samples");
  const auto said = key != nullptr ? parse_number<long long>(key->value) : std::nullopt;
  return said.value_or(*parse_number<long long>(traits::kRunSamples));
}

/// The engine reads every key; another program may not. The engine shrinks a batch that is longer than the run.
std::vector<BatchChoice> batches_of(const OptimizeOptions& options, const knobs::ConfigFile& config,
                                    knobs::Settings settings) {
  if (!options.command.empty()) {
    return batch_choices(settings, options.allow_semantic);
  }
  if (settings.contains("batch.size")) {
    settings.set("batch.accumulation", settings.integer("batch.accumulation"));
  }
  return batch_choices(settings, options.allow_semantic, run_samples(config));
}

/// The engine trains only whole steps, so a larger step may leave out more samples. Empty when it does not.
std::string shortened_note(long long samples, const knobs::Settings& before, const knobs::Settings& changes) {
  const long long step = knobs::effective_batch(knobs::overlaid(before, changes));
  const long long rest = samples % step;
  if (rest <= samples % knobs::effective_batch(before)) {
    return "";
  }
  return fmt::format("in whole steps of {} samples the run trains {} of the {} that train.samples says; {} is one more",
                     step, samples - rest, samples, samples - rest + step);
}

/// Notes settings that were not tried because a comment gives a reason for their value.
void note_decisions(const knobs::ConfigFile& config, OptimizeResult& result) {
  const knobs::Recognition recognition = knobs::recognize(config);
  for (const auto& [knob, found] : knobs::configured(recognition)) {
    if (const auto decision = knobs::decision_on(config, recognition, knob)) {
      result.notes.push_back(fmt::format("line {}: {} was not tried, its comment says: {}", decision->line,
                                         decision->path, decision->comment));
    }
  }
}

}  // namespace

void benchmark_config(const OptimizeOptions& options, const knobs::ConfigFile& config, const traits::Workload* workload,
                      const Hardware& hardware, const Progress& progress, std::stop_token stop,
                      OptimizeResult& result) {
  TemporaryFolder::sweep("unidle-optimize");
  const TemporaryFolder scratch("unidle-optimize");
  const bool ours = options.command.empty();
  const knobs::Settings settings = ours ? knobs::read_settings(config) : knobs::read_foreign_settings(config);
  TunerOptions tuning;
  tuning.trials = options.trials;
  tuning.only = options.only;
  tuning.say = progress.say;
  const double trial_s =
      std::clamp(options.budget_s / (options.trials + 2 * tuning.pairs + 1), kShortestTrial, kLongestTrial);
  TrialStore store(home_folder() / "searches", identity_of(options, config, trial_s));
  if (options.fresh) {
    store.clear();
  }
  const std::int64_t start = system_clock().now_ns();
  std::unique_ptr<EngineRunner> engine;
  std::unique_ptr<CommandRunner> foreign;
  if (ours) {
    engine = engine_runner(options, settings, scratch.path(), store, result.plan, stop);
  } else {
    foreign = command_runner(options, scratch.path(), trial_s);
  }
  ResumingRunner runner(ours ? static_cast<TrialRunner&>(*engine) : *foreign, store);
  tuning.budget_s = options.budget_s;
  tuning.spent_s = seconds(system_clock().now_ns() - start);
  tuning.batches = batches_of(options, config, settings);
  Tuner tuner(runner, system_clock(), settings, propose(settings, workload, hardware, {!ours}), tuning,
              progress.on_trial);
  result.outcome = tuner.run(stop);
  result.changes = result.outcome->changes;
  if (ours && !result.changes.empty()) {
    const std::string note = shortened_note(run_samples(config), settings, result.outcome->best);
    if (!note.empty()) {
      result.notes.push_back(note);
    }
  }
  if (foreign) {
    note_decisions(config, result);
    result.notes.push_back(fmt::format("your files: {}", in_words(foreign->protection())));
  }
  if (foreign && !foreign->note().empty()) {
    result.notes.push_back(foreign->note());
  }
  if (runner.resumed() > 0) {
    result.notes.push_back(resumed_note(runner.resumed()));
  }
  if (!result.outcome->interrupted) {
    store.clear();
  }
}

}  // namespace unidle::tune
