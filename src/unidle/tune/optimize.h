// `unidle optimize`: from a configuration to a better one.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/knobs/config_file.h"
#include "unidle/traits/workload.h"
#include "unidle/tune/advice/advise.h"
#include "unidle/tune/advice/hardware.h"
#include "unidle/tune/advice/proposals.h"
#include "unidle/tune/output/result.h"
#include "unidle/tune/search/tuner.h"
#include "unidle/tune/trials/edits.h"

namespace unidle::tune {

struct OptimizeOptions {
  std::filesystem::path config;         // empty: tune `command` through what can be changed at run time
  std::vector<std::string> command;     // empty: the workload's own program
  std::filesystem::path train_program;  // unidle-train
  bool benchmark = false;
  bool allow_semantic = false;
  Profile profile = Profile::kBalanced;  // without benchmark
  std::string device;                    // of another machine, see with_device(); empty: this machine's
  double cpus = 0;                       // of another machine; 0: those that this job may use here
  double budget_s = 600;
  int trials = 12;
  std::set<std::string> only;  // knobs to search; empty: all
  bool fresh = false;          // measure again what an earlier, killed search has measured
  bool may_write = false;      // trials may overwrite the program's files when the kernel cannot prevent it
  /// What to try with a command. Nothing: what the hardware, and the diagnosis of each trial, propose.
  std::optional<std::vector<Proposal>> proposals;
  Edits edits = {};           // of the program's lines, for those of `proposals` that nothing else changes
  knobs::Settings applied;    // to the running program in every trial of a command, see ProgramPlan
  long long least_steps = 0;  // of a trial of a command, see ApplyRunner::Options
};

/// What is told while a search runs, on its thread.
struct Progress {
  Tuner::OnTrial on_trial;
  std::function<void(const std::string& sentence)> say;  // English
};

/// Finds a better configuration: without a benchmark or with a command for any program, otherwise for a workload.
/// Writes only the record of a benchmark and temporary files. Throws kInput for an unusable configuration (subject:
/// file, line, key), and kMissing when `train_program` is needed but absent.
OptimizeResult optimize(const OptimizeOptions& options, const Progress& progress, std::stop_token stop);

/// The same for a command without a configuration, always measured. Trials are protected as well as this machine allows
/// (experiment/protection.h); where the kernel cannot protect files, throws kUsage unless `may_write`. Throws like
/// ApplyRunner::calibrate.
OptimizeResult optimize_program(const OptimizeOptions& options, const Progress& progress, std::stop_token stop);

/// The search of optimize() with a benchmark: fills in `result` except for texts and files.
void benchmark_config(const OptimizeOptions& options, const knobs::ConfigFile& config, const traits::Workload* workload,
                      const Hardware& hardware, const Progress& progress, std::stop_token stop, OptimizeResult& result);

}  // namespace unidle::tune
