// The result of an optimisation, for people and for programs.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unidle/language/language.h"
#include "unidle/tune/advice/advise.h"
#include "unidle/tune/advice/code_changes.h"
#include "unidle/tune/search/tuner.h"
#include "unidle/tune/trials/apply_runner.h"
#include "unidle/tune/trials/engine_runner.h"

namespace unidle::tune {

/// For a program that was tuned without a configuration.
struct ProgramResult {
  std::vector<std::string> command;
  ProgramPlan plan;
  std::string note;              // why the user's files were not better protected; may be empty
  std::string run;               // the command with the changes; empty when there are none
  std::vector<CodeChange> code;  // the changes as lines of code
  std::string patch;             // the changes as a unified diff of its files, as far as known
};

struct OptimizeResult {
  std::string config;
  std::string before;  // text of the configuration
  std::string after;   // equal to `before` without changes
  std::vector<knobs::Change> changes;
  std::string diff;                     // with reasons; empty without changes
  std::vector<std::string> left;        // worthwhile changes that the file cannot express
  std::vector<std::string> notes;       // facts that the advice could not know
  std::string framework;                // to which the configuration belongs
  std::optional<TunerOutcome> outcome;  // of a benchmark
  std::optional<TrialPlan> plan;        // of a benchmark of a workload
  std::optional<ProgramResult> program;
  std::filesystem::path record;  // of a benchmark; empty when it could not be written
};

/// Text for people: diff, trial table, conclusion. Sentences of the result are English and translated here.
std::string to_text(const OptimizeResult& result, Language language = Language::kEnglish);
std::string stage_in_words(const LoggedTrial& trial, Language language);
/// "trial 3: loader.workers=2: 41.3 samples/s, kept"
std::string one_line(const LoggedTrial& trial, Language language = Language::kEnglish);
/// unidle.optimize/1, in English
nlohmann::json to_json(const OptimizeResult& result);
nlohmann::json to_json(const knobs::Change& change);
nlohmann::json to_json(const LoggedTrial& trial);
nlohmann::json to_json(const Verification& verification);

}  // namespace unidle::tune
