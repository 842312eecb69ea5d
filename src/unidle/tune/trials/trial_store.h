// Trials kept on disk while a search goes on, so that one that was killed goes on where it was.
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

/// Of a search: the command, the scripts and configurations in the working folder (names, sizes, times; what the
/// program or a shell writes there meanwhile does not count), this machine, and our version. Searches with the same
/// identity may use each other's trials.
std::string search_identity(const std::vector<std::string>& command, const std::filesystem::path& folder,
                            const Hardware& hardware);

/// One search's trials, as files in a folder of its own. Trouble with the disk is logged once, and the search goes on
/// without. Not thread-safe.
class TrialStore {
 public:
  /// `home` holds the folders of all searches. Trials that are older than a day are left out: machines change.
  TrialStore(const std::filesystem::path& home, const std::string& identity, Disk& disk = system_disk());

  std::optional<ProgramPlan> plan() const;  // of a program
  void keep(const ProgramPlan& plan);
  std::optional<TrialPlan> trial_plan() const;  // of a workload
  void keep(const TrialPlan& plan);
  /// The n-th run with these settings, counted from 0.
  std::optional<TrialResult> find(const knobs::Settings& changes, int number) const;
  void keep(const knobs::Settings& changes, int number, const TrialResult& result);
  /// The search is over: a later one measures anew.
  void clear();

 private:
  std::filesystem::path file_of(const knobs::Settings& changes, int number) const;
  void write(const std::filesystem::path& file, const std::string& text);

  std::filesystem::path folder_;
  Disk& disk_;
  bool broken_ = false;
};

/// What to say of so many trials that an earlier search measured.
std::string resumed_note(int trials);

/// Answers from the store what was measured before, and keeps what `inner` measures. Both must outlive it.
class ResumingRunner : public TrialRunner {
 public:
  ResumingRunner(TrialRunner& inner, TrialStore& store) : inner_(inner), store_(store) {}
  TrialResult run(const knobs::Settings& changes, std::stop_token stop) override;
  std::optional<TrialResult> run_longest(const knobs::Settings& changes, std::stop_token stop) override {
    return inner_.run_longest(changes, stop);
  }
  int resumed() const { return resumed_; }

 private:
  TrialRunner& inner_;
  TrialStore& store_;
  std::map<knobs::Settings, int> runs_;
  int resumed_ = 0;
};

}  // namespace unidle::tune
