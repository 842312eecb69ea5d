// Two runs side by side: which is faster and by how much, where the time went, what differs, does it learn as well.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/experiment/parity.h"
#include "unidle/experiment/ratio.h"

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
  std::string outcome;  // as recorded; "unknown" when it is not
  Throughput throughput;
  std::optional<double> samples_per_step;                // median after warm-up, of all ranks
  std::array<std::optional<double>, kPartCount> step_s;  // mean seconds per step by part, of the parts that were seen
  std::optional<double> whole_step_s;
  account::PhaseTimes phases;
  double wall_s = 0;
  std::size_t validations = 0;
  std::size_t checkpoints = 0;
  std::optional<double> gpu_busy;             // 0..1, of its own device while it trained
  std::optional<double> cpu_busy;             // 0..1 of the CPUs that the run was allowed to use
  std::optional<double> own_cpus;             // in use by the run while it trained
  std::optional<double> others_cpus;          // by everything else on the machine meanwhile
  bool rough = false;                         // others used so much that the rates are rough
  bool window = false;                        // a profiler's window: the rates are of the steps before it
  std::optional<double> energy_per_sample_j;  // of all devices while it trained, where they tell their power
};

Summary summarise(const RunData& run, const Account& account, std::uint64_t seed = 1);
Summary summarise(const RunData& run);

/// A knob that differs in at least one of its two readings. Absent: not known.
struct SettingDifference {
  std::string knob;
  std::optional<std::string> configured_a, configured_b;
  std::optional<std::string> effective_a, effective_b;
};

/// Two runs that stood side by side, one of each.
struct RunPair {
  double a = 0;  // training samples/s
  double b = 0;
  double ratio = 0;
};

struct Comparison {
  Summary a;
  Summary b;
  double tolerance = 0.05;
  std::optional<experiment::Ratio> training_ratio;  // samples/s of B over A, steps alone
  std::optional<experiment::Ratio> total_ratio;     // with validation and checkpoints
  experiment::SpeedChange training = experiment::SpeedChange::kUnknown;
  experiment::SpeedChange total = experiment::SpeedChange::kUnknown;
  std::vector<SettingDifference> settings;
  std::vector<RunPair> pairs;                    // in turns; empty for two single runs
  experiment::Parity learning;                   // the loss, then the metrics
  std::vector<std::string> regressions;          // each a sentence; empty: B is no regression
  std::vector<std::string> notes;                // what to know when reading the figures
  nlohmann::json changes, trials, verification;  // as an optimising run wrote them; null when there are none

  bool regression() const { return !regressions.empty(); }
};

/// Pure and seeded: the same runs give the same result. `tolerance` as a share.
Comparison compare(const RunData& a, const RunData& b, double tolerance = 0.05);

/// Two configurations, as often one as the other: the ratios of all pairs, what all runs learned, and everything else
/// of the pair with the median ratio. The interval is a bootstrap over pairs and over the steps in them. REQUIRES: as
/// many of A as of B, one at least.
Comparison compare(std::span<const RunData> a, std::span<const RunData> b, double tolerance = 0.05);

/// Why the rates of a run are rough, in one sentence about `name`; "" where they are not.
std::string rough_words(const Summary& summary, const std::string& name);
/// Which steps the rates of a run with a profiler's window are of, in one sentence; "" without one.
std::string window_words(const Summary& summary, const std::string& name);

/// The answer in one sentence, with the names that the reader knows the two by.
std::string headline(const Comparison& comparison, const std::string& a = "A", const std::string& b = "B");

/// For a terminal of `width` columns.
std::string to_text(const Comparison& comparison, int width, bool colour);

/// Schema unidle.comparison/1; docs/compare.md describes it.
nlohmann::json to_json(const Comparison& comparison);

}  // namespace unidle::report
