// What an optimisation found, and how it is said to people and to programs.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unidle/tune/advice/advise.h"
#include "unidle/tune/advice/code_changes.h"
#include "unidle/tune/search/tuner.h"
#include "unidle/tune/trials/apply_runner.h"
#include "unidle/tune/trials/engine_runner.h"

namespace unidle::tune {

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
