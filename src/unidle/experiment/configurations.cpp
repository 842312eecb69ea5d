#include "unidle/experiment/configurations.h"

#include <fmt/format.h>

#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/configured/configured.h"
#include "unidle/experiment/last_line_of.h"
#include "unidle/experiment/protection.h"
#include "unidle/observe/observe.h"

namespace unidle::experiment {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPlaceholder = "{config}";

ConfigurationRun run_one(const ConfigurationTurns& turns, Side side, const fs::path& scratch, Protection protection,
                         const std::stop_token& stop) {
  ConfigurationRun done;
  done.side = side;
  done.config = side == Side::kA ? turns.a : turns.b;
  done.record = scratch / "record";
  observe::Options run;
  run.argv = command_for(turns, done.config);
  run.record = done.record;
  run.quiet = true;
  run.forward_signals = false;
  run.timeout_s = turns.seconds;
  run.stop = stop;
  run.configured = diagnose::configured_settings(run.argv, fs::current_path());
  const fs::path own = scratch / "own";
  if (turns.command.empty()) {
    run.argv.push_back("checkpoint.folder=" + (scratch / "checkpoints").string());
  } else {
    protect(run, protection, fs::current_path(), turns.command, own);
  }
  const observe::Result ended = observe::run(run);
  remove_tree(own);
  if (stop.stop_requested()) {
    throw Error(ErrorCode::kCancelled, "compare", "stopped before all runs were done");
  }
  done.timed_out = ended.timed_out;
  if (side == Side::kA && !ended.timed_out && !ended.status.ok()) {
    throw Error(ErrorCode::kChild, done.config.string(), last_line_of(ended.err_tail, ended.out_tail),
                "the configuration to compare with must run");
  }
  return done;
}

}  // namespace

std::vector<std::string> with_config(const std::vector<std::string>& command, const fs::path& config) {
  const std::string path = config.string();
  std::vector<std::string> replaced;
  bool has_place = false;
  for (std::string word : command) {
    for (std::size_t at = word.find(kPlaceholder); at != std::string::npos; at = word.find(kPlaceholder, at)) {
      word.replace(at, kPlaceholder.size(), path);
      at += path.size();
      has_place = true;
    }
    replaced.push_back(std::move(word));
  }
  if (!has_place) {
    throw Error(ErrorCode::kUsage, std::string(kPlaceholder), "is not in the command",
                "write {config} where the command takes its configuration file");
  }
  return replaced;
}

std::vector<std::string> command_for(const ConfigurationTurns& turns, const fs::path& config) {
  const fs::path path = fs::absolute(config);
  if (!turns.command.empty()) {
    return with_config(turns.command, path);
  }
  if (!fs::exists(turns.train_program)) {
    throw Error(ErrorCode::kMissing, turns.train_program.string(), "is not there, and a workload needs it",
                "build it with ./dev build, or give the training command after --");
  }
  return {turns.train_program.string(), path.string(), "checkpoint.interval=0", "--format", "json", "-q"};
}

void run_in_turns(const ConfigurationTurns& turns, std::stop_token stop) {
  TemporaryFolder::sweep("unidle-compare");
  const TemporaryFolder scratch("unidle-compare");
  const Protection protection = ways_to_protect(fs::current_path(), turns.command, scratch.path()).ways.front();
  for (int pair = 0; pair < turns.runs; ++pair) {
    for (const Side side : turns_of_pair(static_cast<std::size_t>(pair))) {
      const fs::path folder = scratch.path() / fmt::format("{}-{}", side == Side::kA ? 'a' : 'b', pair);
      make_folders(folder);
      ConfigurationRun done = run_one(turns, side, folder, protection, stop);
      done.pair = pair;
      turns.on_run(done);
    }
  }
}

}  // namespace unidle::experiment
