// Stores trials on disk during a search, so that a killed search can be resumed.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/disk.h"
#include "unidle/tune/advice/hardware.h"
#include "unidle/tune/trials/apply_runner.h"
#include "unidle/tune/trials/engine_runner.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// Identifies a search: the command, the scripts and configurations in the working folder (names, sizes, times; files
/// that the program or a shell writes there are ignored), this machine, and our version. Searches with the same
/// identity may use each other's trials.
std::string search_identity(const std::vector<std::string>& command, const std::filesystem::path& folder,
                            const Hardware& hardware);

/// The trials of one search, as files in their own folder. Disk errors are logged once, and the search continues
/// without the store. Not thread-safe.
class TrialStore {
 public:
  /// `home` contains the folders of all searches. Ignores trials older than a day, because machines change.
  TrialStore(const std::filesystem::path& home, const std::string& identity, Disk& disk = system_disk());

  std::optional<ProgramPlan> plan() const;  // of a program
  void keep(const ProgramPlan& plan);
  std::optional<TrialPlan> trial_plan() const;  // of a workload
  void keep(const TrialPlan& plan);
  /// The n-th run with these settings, counted from 0.
  std::optional<TrialResult> find(const knobs::Settings& changes, int number) const;
  void keep(const knobs::Settings& changes, int number, const TrialResult& result);
  /// Deletes the trials at the end of a search: a later one measures again.
  void clear();

 private:
  std::filesystem::path file_of(const knobs::Settings& changes, int number) const;
  void write(const std::filesystem::path& file, const std::string& text);

  std::filesystem::path folder_;
  Disk& disk_;
  bool broken_ = false;
};

/// The note for `trials` trials that an earlier search measured.
std::string resumed_note(int trials);

/// Returns stored results for runs that were measured before, and stores those that `inner` measures. Both must outlive
/// it.
class ResumingRunner : public TrialRunner {
 public:
  ResumingRunner(TrialRunner& inner, TrialStore& store) : inner_(inner), store_(store) {}
  TrialResult run(const knobs::Settings& changes, double limit_s, std::stop_token stop) override;
  std::optional<TrialResult> run_longest(const knobs::Settings& changes, double limit_s,
                                         std::stop_token stop) override {
    return inner_.run_longest(changes, limit_s, stop);
  }
  int resumed() const { return resumed_; }

 private:
  TrialRunner& inner_;
  TrialStore& store_;
  std::map<std::string, int> runs_;  // by what knobs::describe says of the changes
  int resumed_ = 0;
};

}  // namespace unidle::tune
