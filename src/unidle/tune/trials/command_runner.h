// Trials of any training command that takes a configuration file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "unidle/experiment/protection.h"
#include "unidle/knobs/config_file.h"
#include "unidle/tune/trials/trial.h"
#include "unidle/tune/trials/trial_record.h"

namespace unidle::tune {

/// Each trial runs the command on an edited copy of the configuration for at most `trial_s` seconds; the rate comes
/// from the steps in its record. Losses are compared over the samples that the first trial processed. Not thread-safe.
class CommandRunner : public TrialRunner {
 public:
  struct Options {
    std::vector<std::string> command;  // with {config} as placeholder for the file's path
    std::filesystem::path config;
    std::filesystem::path scratch;
    std::filesystem::path folder;  // working folder
    std::vector<experiment::Protection>
        ways;  // of the user's files, best first; the next is used when the program fails under one
    bool allow_semantic = false;
    double trial_s = 30;
  };

  /// Throws kUsage when the command has no {config}, kInput when the configuration cannot be read.
  explicit CommandRunner(Options options);
  /// A program that fails under one protection runs under the next from then on.
  TrialResult run(const knobs::Settings& changes, double limit_s, std::stop_token stop) override;
  std::optional<TrialResult> run_longest(const knobs::Settings& changes, double limit_s, std::stop_token stop) override;
  void recall(const TrialResult& result) override { TrialResult(result).read_loss(losses_); }
  /// Why a better protection was not used; empty when there is none.
  const std::string& note() const { return note_; }
  experiment::Protection protection() const { return options_.ways.front(); }

 private:
  struct Length {
    double limit_s = 0;
    bool longest_first = false;  // the first batch consists of the longest samples
  };
  TrialResult run_once(const knobs::Settings& changes, const Length& length, std::stop_token stop);
  void read(const std::filesystem::path& record, const knobs::Settings& changes, TrialResult& result);

  Options options_;
  knobs::ConfigFile config_;
  int trials_ = 0;
  bool late_ = false;     // the newest trial reached its time limit
  bool settled_ = false;  // a trial succeeded, so later failures are caused by the settings
  std::string note_;
  experiment::LossScale losses_;
};

}  // namespace unidle::tune
