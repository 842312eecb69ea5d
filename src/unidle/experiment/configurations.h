// Two configurations of one program, run in turns under observation.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/experiment/turns.h"

namespace unidle::experiment {

/// A run that has ended.
struct ConfigurationRun {
  Side side = Side::kA;
  int pair = 0;                  // from 0
  std::filesystem::path config;  // that it ran
  std::filesystem::path record;  // deleted when on_run returns
  bool timed_out = false;        // ended by us, as it was meant to be
};

struct ConfigurationTurns {
  std::filesystem::path a;
  std::filesystem::path b;
  std::vector<std::string> command;     // with {config} where the file goes; empty: the workload's own program
  std::filesystem::path train_program;  // unidle-train
  int runs = 3;                         // of each
  double seconds = 30;                  // a run that has not ended by then is ended
  std::function<void(const ConfigurationRun&)> on_run;
};

/// `command` with the path of a configuration in place of {config}. Throws kUsage when it has none.
std::vector<std::string> with_config(const std::vector<std::string>& command, const std::filesystem::path& config);

/// The command of one configuration. Throws kUsage when `command` has no {config}, kMissing without `train_program`.
std::vector<std::string> command_for(const ConfigurationTurns& turns, const std::filesystem::path& config);

/// Each run is a fresh process in a copy of the working folder where one can be made. Throws kChild when A fails,
/// kCancelled when stopped; that B fails is an answer.
void run_in_turns(const ConfigurationTurns& turns, std::stop_token stop);

}  // namespace unidle::experiment
