// `unidle fix`: what a record's findings propose, tried alternating with the unchanged program.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/account/phases.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/knobs/run_options.h"
#include "unidle/language/language.h"
#include "unidle/record/record.h"
#include "unidle/tune/advice/proposals.h"
#include "unidle/tune/optimize.h"

namespace unidle::tune {

struct FixOptions {
  std::filesystem::path record;
  std::vector<std::string> command;  // in the working folder; empty: the record's
  double budget_s = 0;               // 0: what ten runs of the program take, from 5 to 30 minutes
  bool allow_semantic = false;
  bool may_write = false;                  // see OptimizeOptions
  bool fresh = false;                      // see OptimizeOptions
  Language language = Language::kEnglish;  // of FixPlan::answer
};

/// A setting that is tried.
struct Attempt {
  knobs::Change change;
  std::string finding;     // id
  std::string where = {};  // file:line; may be empty
};

/// A finding, or a fix of one, that is left to the user.
struct ByHand {
  std::string finding;       // id
  std::string title;         // of its rule
  std::string what;          // one sentence
  std::string where;         // file:line; may be empty
  std::string setting = {};  // "knob: from -> to"; may be empty
  std::string words = {};    // the change in the words of the program, in place of a setting; may be empty
  std::string command = {};  // that makes the change, if an option does
  std::string knob = {};     // that changes; may be empty
};

/// What a record leads to. Texts but the answer are English.
struct FixPlan {
  std::filesystem::path record;
  std::vector<std::string> command;
  std::filesystem::path folder;  // in which the command runs
  std::string answer;            // the diagnosis in one sentence
  std::vector<Proposal> proposals;
  std::vector<Attempt> attempts;  // the settings of `proposals`, strongest first; of several values the likeliest
  std::vector<ByHand> by_hand;
  std::vector<std::string> notes;
  Edits edits;                    // of the program's lines, for those of `proposals` that nothing else changes
  knobs::RunOptions run_options;  // of the recorded run; what it applied stays in every trial
  long long least_steps = 0;      // of a trial that shows what is tried
  double run_s = 0;               // such a run of the program
  double budget_s = 0;            // for all trials
  account::PhaseTimes time;       // of the recorded run
};

/// Reads the record. Throws kInput for one whose command cannot be run again here, or that shows no training: a log,
/// the record of a failed run, of several nodes or processes, of a program or folder that is gone. Throws kUsage when
/// the budget is too short.
FixPlan plan_fix(const FixOptions& options);

/// What plan_fix() would find to try; nothing where it throws.
struct Fixable {
  std::size_t changes = 0;
  bool of_first = false;  // one of them is of the first finding
};
Fixable fixable(const std::filesystem::path& record, const diagnose::Diagnosis& diagnosis);

/// Runs the trials. REQUIRES: `plan` has attempts, and its folder is the working folder. Throws like
/// optimize_program().
OptimizeResult try_fix(const FixPlan& plan, const FixOptions& options, const Progress& progress, std::stop_token stop);

/// What will be tried, and, unless trials follow, what is left to the user.
std::string to_text(const FixPlan& plan, bool trials_follow, int width, Language language);
/// The gain, how to get it, and what is left to the user. `here`: the present working folder.
std::string to_text(const FixPlan& plan, const OptimizeResult& result, const std::filesystem::path& here, int width,
                    Language language);
/// One trial in plain words.
std::string fix_line(const LoggedTrial& trial, Language language);
/// unidle.fix/1, in English. `result`: nothing when nothing was tried.
nlohmann::json to_json(const FixPlan& plan, const std::optional<OptimizeResult>& result);

}  // namespace unidle::tune
