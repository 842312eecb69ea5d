// Two configurations of one program, run in turns and compared over all runs.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/report/comparison.h"

namespace unidle::report {

struct TurnsOptions {
  std::filesystem::path a;
  std::filesystem::path b;
  std::vector<std::string> command;     // with {config} where the file goes; empty: the workload's own program
  std::filesystem::path train_program;  // unidle-train
  int runs = 3;                         // of each
  double seconds = 30;                  // a run that has not ended by then is ended
  std::function<void(const std::string& line)> progress;  // after each run
};

/// The commands of the two, as they are run. Throws kUsage when `command` has no {config}, kMissing without
/// `train_program`.
std::vector<std::string> command_for(const TurnsOptions& options, const std::filesystem::path& config);

struct Turns {
  std::vector<RunData> a;
  std::vector<RunData> b;
};

/// A, B, B, A, A, B ...: a machine that gets slower steadily favours neither. Each run is a fresh process in a copy of
/// the working folder where one can be made. Throws kChild when A fails, kCancelled when stopped; that B fails is an
/// answer.
Turns run_in_turns(const TurnsOptions& options, std::stop_token stop);

/// Rates of all pairs, and everything else of the pair with the median ratio. The interval is a bootstrap over pairs
/// and over the steps in them. REQUIRES: as many of A as of B, one at least.
Comparison compare_turns(const Turns& turns, double tolerance = 0.05);

}  // namespace unidle::report
