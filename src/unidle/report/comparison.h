// Compares two runs: which is faster and by how much, where the time went, what differs, and whether B learns as well.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/experiment/parity.h"
#include "unidle/experiment/ratio.h"
#include "unidle/language/translator.h"

namespace unidle::report {

using account::Account;
using account::kPartNames;
using account::Part;
using account::Rate;
using account::RunData;
using account::Throughput;
using enum account::Part;

/// The figures of one run.
struct Summary {
  std::string name;
  std::string outcome;  // as recorded; "unknown" when missing
  Throughput throughput;
  std::optional<double> samples_per_step;                // median after warm-up, of all ranks
  std::array<std::optional<double>, kPartCount> step_s;  // mean seconds per step, of the parts that were seen
  std::optional<double> whole_step_s;
  std::size_t ranks = 1;              // processes that train together
  std::optional<double> rank_wait_s;  // of the compute part: waits for gradients of others
  account::PhaseTimes phases;
  double wall_s = 0;
  std::size_t validations = 0;
  std::size_t checkpoints = 0;
  std::optional<double> gpu_busy;             // 0..1, of its own GPU while training
  std::optional<double> cpu_busy;             // 0..1 of the CPUs allowed to the run
  std::optional<double> own_cpus;             // used by the run while training
  std::optional<double> others_cpus;          // used by all other processes meanwhile
  bool rough = false;                         // other processes used so many CPUs that the rates are imprecise
  bool window = false;                        // has a profiler's window: the rates are of the steps before it
  std::optional<double> energy_per_sample_j;  // of all devices while training, when they report their power
};

Summary summarise(const RunData& run, const Account& account, std::uint64_t seed = 1);
Summary summarise(const RunData& run);

/// A knob whose configured or effective values differ between the runs. Absent: not known.
struct SettingDifference {
  std::string knob;
  std::optional<std::string> configured_a, configured_b;
  std::optional<std::string> effective_a, effective_b;
};

/// Two runs of a pair, one per side.
struct RunPair {
  double a = 0;  // training samples/s
  double b = 0;
  double ratio = 0;
};

/// Share by which B may be slower before it counts as a regression.
constexpr double kTolerance = 0.05;

struct Comparison {
  Summary a;
  Summary b;
  double tolerance = kTolerance;
  std::optional<experiment::Ratio> training_ratio;  // samples/s of B relative to A, only steps
  std::optional<experiment::Ratio> total_ratio;     // including validation and checkpoints
  experiment::SpeedChange training = experiment::SpeedChange::kUnknown;
  experiment::SpeedChange total = experiment::SpeedChange::kUnknown;
  std::vector<SettingDifference> settings;
  std::vector<RunPair> pairs;                    // alternating runs; empty for two single runs
  experiment::Parity learning;                   // the loss, then the metrics
  bool different_programs = false;               // their rates say nothing of each other
  bool unchanged = false;                        // two single runs, and no record tells of a difference
  std::vector<std::string> regressions;          // one sentence each; empty: B is no regression
  std::vector<std::string> notes;                // caveats about the figures
  nlohmann::json changes, trials, verification;  // as an optimising run recorded them; null when absent

  bool regression() const { return !regressions.empty(); }
  /// True where the whole run, with validation, differs more than its steps do: the whole decides.
  bool by_whole() const;
  /// True when the CPUs that other processes used during the slower of two single runs may explain the difference.
  bool may_be_others() const;
};

/// The knobs whose values differ; none when one of the runs recorded no settings.
std::vector<SettingDifference> setting_differences(const RunData& a, const RunData& b);

/// Pure and seeded: the same runs give the same result. `tolerance`: a share.
/// Its sentences are in `language`.
Comparison compare(const RunData& a, const RunData& b, double tolerance = kTolerance,
                   Language language = Language::kEnglish);

/// Compares two configurations with equally many runs: the ratios are over all pairs, learning is over all runs, and
/// everything else comes from the pair with the median ratio. REQUIRES: as many runs of A as of B, at least one.
Comparison compare(std::span<const RunData> a, std::span<const RunData> b, double tolerance = kTolerance,
                   Language language = Language::kEnglish);

/// Why the rates of a run are imprecise, in one sentence about `name`; "" when they are not.
std::string imprecise_words(const Summary& summary, const std::string& name, const Translator& translator);
/// Which steps determine the rates of a run with a profiler's window, in one sentence; "" without one.
std::string window_words(const Summary& summary, const std::string& name, const Translator& translator);

/// The answer in one sentence, with the reader's names for the two runs.
std::string headline(const Comparison& comparison, const std::string& a = "A", const std::string& b = "B",
                     Language language = Language::kEnglish);

/// Text for a terminal of `width` columns.
std::string to_text(const Comparison& comparison, int width, bool colour, Language language = Language::kEnglish);

/// Schema unidle.comparison/1; docs/compare.md describes it.
nlohmann::json to_json(const Comparison& comparison);

}  // namespace unidle::report
