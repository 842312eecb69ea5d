// Runs two configurations of one program alternately under observation.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/experiment/turns.h"

namespace unidle::experiment {

/// A finished run.
struct ConfigurationRun {
  Side side = Side::kA;
  int pair = 0;                  // from 0
  std::filesystem::path config;  // the configuration that ran
  std::filesystem::path record;  // exists until run_in_turns returns
  bool timed_out = false;        // ended by us at the time limit, as intended
};

struct ConfigurationTurns {
  std::filesystem::path a;
  std::filesystem::path b;
  std::vector<std::string> command;     // with {config} as placeholder for the file; empty: the workload's own program
  std::filesystem::path train_program;  // unidle-train
  int runs = 4;                         // per configuration
  double seconds = 30;                  // longer runs are ended
  std::function<void(const ConfigurationRun&)> on_run;
};

/// `command` with {config} replaced by the path of a configuration. Throws kUsage when it has no {config}.
std::vector<std::string> with_config(const std::vector<std::string>& command, const std::filesystem::path& config);

/// The command for one configuration. Throws kUsage when `command` has no {config}, and kMissing when `train_program`
/// is needed but absent.
std::vector<std::string> command_for(const ConfigurationTurns& turns, const std::filesystem::path& config);

/// Runs each configuration in a fresh process. A command is protected as well as this machine allows (protection.h); a
/// workload's own program writes its checkpoints to a temporary folder. Throws kChild when A fails and kCancelled when
/// stopped; a failure of B is a result.
void run_in_turns(const ConfigurationTurns& turns, std::stop_token stop);

}  // namespace unidle::experiment
