// `unidle optimize`, from a configuration to a better one.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/tune/advice/advise.h"
#include "unidle/tune/advice/code_changes.h"
#include "unidle/tune/search/tuner.h"
#include "unidle/tune/trials/apply_runner.h"
#include "unidle/tune/trials/engine_runner.h"

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
  bool ask_to_write = false;   // refuse to run trials of a program where they write over its files
};

/// Of a program that was tuned without a configuration.
struct ProgramResult {
  std::vector<std::string> command;
  ProgramPlan plan;
  std::string note;              // why the user's files were not protected better; may be empty
  std::string run;               // the command with the changes; empty when there are none
  std::vector<CodeChange> code;  // the same as lines of the program
  std::string patch;             // the same as a unified diff of its files, as far as that can be told
};

struct OptimizeResult {
  std::string config;
  std::string before;  // text of the configuration
  std::string after;   // the same when nothing is to be changed
  std::vector<Change> changes;
  std::string diff;                     // with reasons; empty when nothing is changed
  std::vector<std::string> left;        // worth changing, but the file has no way to say it
  std::vector<std::string> notes;       // what the advice could not know
  std::string framework;                // whose configuration it is
  std::optional<TunerOutcome> outcome;  // of a benchmark
  std::optional<TrialPlan> plan;        // of a benchmark of a workload
  std::optional<ProgramResult> program;
  std::filesystem::path record;  // of a benchmark; empty when it could not be written
};

/// Finds a better configuration, of any program without a benchmark or with a command, otherwise of a workload. Writes
/// nothing but the record of a benchmark and scratch files that are removed. Throws kInput for a configuration that
/// cannot be used (subject: file, line, key), kMissing without `train_program`.
OptimizeResult optimize(const OptimizeOptions& options, const Tuner::OnTrial& on_trial, std::stop_token stop);

/// The same for a command without a configuration, always measured. Trials run in copies of the working folder where
/// that is possible; otherwise in the folder itself, or not at all (kUsage) with `ask_to_write`. Throws as
/// ApplyRunner::calibrate.
OptimizeResult optimize_program(const OptimizeOptions& options, const Tuner::OnTrial& on_trial, std::stop_token stop);

/// The search of optimize() with a benchmark: fills in `result`, but for text and files.
void benchmark_config(const OptimizeOptions& options, const knobs::ConfigFile& config, const std::string& workload,
                      const Hardware& hardware, const Tuner::OnTrial& on_trial, std::stop_token stop,
                      OptimizeResult& result);

/// Makes `.unidle/runs/TIME-optimize` and names it in `result`; a failure is only logged.
void write_record(OptimizeResult& result);

struct Written {
  std::filesystem::path output;
  std::optional<std::filesystem::path> backup;
};

/// Writes the new text to `output`, or beside the configuration as NAME.optimized.EXT, or in its place with a backup
/// NAME.bak.EXT (NAME.bak2.EXT, ... when that exists). Throws kUsage when `output` is the configuration itself.
Written write_result(const OptimizeResult& result, const std::optional<std::filesystem::path>& output, bool in_place);

/// For people: diff, trial table, conclusion.
std::string to_text(const OptimizeResult& result);
/// unidle.optimize/1
nlohmann::json to_json(const OptimizeResult& result);
nlohmann::json to_json(const Change& change);
nlohmann::json to_json(const LoggedTrial& trial);
nlohmann::json to_json(const Verification& verification);
/// "trial 3: loader.workers=2: 41.3 samples/s, kept"
std::string one_line(const LoggedTrial& trial);

}  // namespace unidle::tune
