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
    bool allow_semantic = false;
    double trial_s = 30;
  };

  /// Throws kUsage when the command has no {config}, kInput when the configuration cannot be read.
  explicit CommandRunner(Options options);
  TrialResult run(const Settings& changes, std::stop_token stop) override;

 private:
  Options options_;
  knobs::ConfigFile config_;
  int trials_ = 0;
  CommonLosses losses_;
};

}  // namespace unidle::tune
