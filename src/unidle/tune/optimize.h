// `unidle optimize`, from a configuration to a better one.
#pragma once

#include <filesystem>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/knobs/config_file.h"
#include "unidle/traits/workload.h"
#include "unidle/tune/advice/advise.h"
#include "unidle/tune/advice/hardware.h"
#include "unidle/tune/output/result.h"
#include "unidle/tune/search/tuner.h"

namespace unidle::tune {

struct OptimizeOptions {
  std::filesystem::path config;         // empty: `command` is tuned through what can be changed while it runs
  std::vector<std::string> command;     // empty: the workload's own program
  std::filesystem::path train_program;  // unidle-train
  bool benchmark = false;
  bool allow_semantic = false;
  Profile profile = Profile::kBalanced;  // without a benchmark
  std::string device;                    // of another machine, see with_device; empty: this one's
  double cpus = 0;                       // of another machine; 0: what this job may use here
  double budget_s = 600;
  int trials = 12;
  std::set<std::string> only;  // knobs to search; empty: all
  bool fresh = false;          // measure anew what an earlier search, which was killed, has measured
  bool may_write = false;      // trials may write over the program's files where the kernel cannot keep them from it
};

/// Finds a better configuration, of any program without a benchmark or with a command, otherwise of a workload. Writes
/// nothing but the record of a benchmark and scratch files that are removed. Throws kInput for a configuration that
/// cannot be used (subject: file, line, key), kMissing without `train_program`.
OptimizeResult optimize(const OptimizeOptions& options, const Tuner::OnTrial& on_trial, std::stop_token stop);

/// The same for a command without a configuration, always measured. Trials run in copies of the working folder where
/// that is possible; otherwise in the folder itself, or not at all (kUsage) without `may_write`. Throws as
/// ApplyRunner::calibrate.
OptimizeResult optimize_program(const OptimizeOptions& options, const Tuner::OnTrial& on_trial, std::stop_token stop);

/// The search of optimize() with a benchmark: fills in `result`, but for text and files.
void benchmark_config(const OptimizeOptions& options, const knobs::ConfigFile& config, const traits::Workload* workload,
                      const Hardware& hardware, const Tuner::OnTrial& on_trial, std::stop_token stop,
                      OptimizeResult& result);

}  // namespace unidle::tune
