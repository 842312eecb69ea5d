// Trials of any training command that takes a configuration file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "unidle/knobs/config_file.h"
#include "unidle/tune/trial.h"
#include "unidle/tune/trial_record.h"

namespace unidle::tune {

/// Each trial runs the command on an edited copy of the configuration for at most `trial_s` seconds; the rate comes
/// from the steps in its record. Losses are compared over the samples that the first trial got through. Not
/// thread-safe.
class CommandRunner : public TrialRunner {
 public:
  struct Options {
    std::vector<std::string> command;  // with {config} where the file's path goes
    std::filesystem::path config;
    std::filesystem::path scratch;
    std::filesystem::path folder;  // that trials run in a copy of; empty: they run in the working folder itself
    bool only_in_copy = false;     // a program that fails in a copy is not tried in the folder itself
    bool allow_semantic = false;
    double trial_s = 30;
  };

  /// Throws kUsage when the command has no {config}, kInput when the configuration cannot be read.
  explicit CommandRunner(Options options);
  /// A program that fails in a copy of its working folder runs in the folder itself from then on.
  TrialResult run(const Settings& changes, std::stop_token stop) override;
  std::optional<TrialResult> run_longest(const Settings& changes, std::stop_token stop) override;
  void recall(const TrialResult& result) override { losses_.read(result.losses); }
  /// Why trials run in the folder itself although a copy was wanted; empty when they do not.
  const std::string& note() const { return note_; }

 private:
  TrialResult run_once(const Settings& changes, bool longest_first, std::stop_token stop);
  void read(const std::filesystem::path& record, const Settings& changes, TrialResult& result);

  Options options_;
  knobs::ConfigFile config_;
  int trials_ = 0;
  std::string note_;
  CommonLosses losses_;
};

}  // namespace unidle::tune
