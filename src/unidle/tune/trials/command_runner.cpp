#include "unidle/tune/trials/command_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/experiment/configurations.h"
#include "unidle/experiment/last_line_of.h"
#include "unidle/observe/observe.h"
#include "unidle/tune/advice/suggestions.h"
#include "unidle/tune/trials/memory_margin.h"
#include "unidle/tune/trials/memory_watch.h"

namespace unidle::tune {

CommandRunner::CommandRunner(Options options)
    : options_(std::move(options)), config_(knobs::ConfigFile::load(options_.config)) {
  experiment::with_config(options_.command, options_.config);  // throws when there is no {config}
}

TrialResult CommandRunner::run(const knobs::Settings& changes, double limit_s, std::stop_token stop) {
  try {
    TrialResult first = run_once(changes, {limit_s}, stop);
    settled_ = settled_ || first.ok;
    if (settled_ || first.interrupted || late_) {
      return first;
    }
    for (std::size_t i = 1; i < options_.ways.size(); ++i) {  // the protection may be why it fails
      std::swap(options_.ways[0], options_.ways[i]);
      TrialResult next = run_once(changes, {limit_s}, stop);
      if (next.ok || next.interrupted) {
        note_ = fmt::format("with protection '{}' the program fails: {}", to_string(options_.ways[i]), first.problem);
        spdlog::warn("{}; now {}", note_, in_words(protection()));
        settled_ = next.ok;
        return next;
      }
      std::swap(options_.ways[0], options_.ways[i]);
    }
    return first;
  } catch (const Error& failure) {
    if (failure.code() != ErrorCode::kIo) {
      throw;
    }
    TrialResult result;  // no space for the copy or record: only this trial is lost
    result.problem = failure.what();
    return result;
  }
}

std::optional<TrialResult> CommandRunner::run_longest(const knobs::Settings& changes, double limit_s,
                                                      std::stop_token stop) {
  return run_once(changes, {limit_s, true}, stop);
}

TrialResult CommandRunner::run_once(const knobs::Settings& changes, const Length& length, std::stop_token stop) {
  const std::filesystem::path folder = options_.scratch / fmt::format("trial-{}", ++trials_);
  knobs::ConfigFile config = config_;
  for (const auto& [knob, value] : changes) {
    knobs::write_setting(config, knob, value);
  }
  make_folders(folder);
  const std::filesystem::path file = folder / options_.config.filename();
  write_file_like(file, config.text(), options_.config);

  observe::Options run;
  run.argv = experiment::with_config(options_.command, file);
  run.record = folder / "record";
  if (length.longest_first) {
    run.environment["UNIDLE_LONGEST"] = "1";
    run.environment["UNIDLE_MAX_STEPS"] = std::to_string(kLongestSteps);
  }
  run.quiet = true;
  run.forward_signals = false;
  run.timeout_s = std::min(options_.trial_s, length.limit_s);
  std::stop_source ending;
  const std::stop_callback stopped(stop, [&ending] { ending.request_stop(); });
  run.stop = ending.get_token();
  const std::filesystem::path own = folder / "own";
  protect(run, protection(), options_.folder, options_.command, own);
  const std::int64_t start = system_clock().now_ns();
  const MemoryWatch watch(ending);
  const observe::Result ended = observe::run(run);
  remove_tree(own);

  TrialResult result;
  result.seconds = seconds(system_clock().now_ns() - start);
  result.interrupted = stop.stop_requested();
  if (result.interrupted) {
    return result;
  }
  if (watch.tripped()) {
    result.problem = fmt::format("left less than {} of memory and was ended", format_bytes(memory_to_keep()));
    return result;
  }
  late_ = ended.timed_out;
  if (!ended.timed_out && !ended.status.ok()) {
    result.problem = experiment::last_line_of(ended.err_tail, ended.out_tail);
    return result;
  }
  read(run.record, changes, result);
  return result;
}

void CommandRunner::read(const std::filesystem::path& record, const knobs::Settings& changes, TrialResult& result) {
  if (!read_trial(account::load_run(record), losses_, result)) {
    return;
  }
  try {
    const diagnose::Diagnosis diagnosis = diagnose::diagnose_record(record);
    result.suggestions = suggestions_of(diagnosis, options_.allow_semantic);
    refuse_full_memory(diagnosis, changes, result);
  } catch (const Error& failure) {
    spdlog::warn("a trial without diagnosis: {}", failure.what());
  }
  // A key that this program does not read would change nothing, so only settings that the file already has are tried.
  std::erase_if(result.suggestions, [&](const Proposal& suggestion) {
    return std::any_of(suggestion.changes.begin(), suggestion.changes.end(),
                       [&](const auto& change) { return !knobs::can_write(config_, change.first, change.second); });
  });
}

}  // namespace unidle::tune
