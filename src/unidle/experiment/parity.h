// Does a changed run learn as well? The only definition, for trials of a search and for comparisons of records.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "unidle/experiment/equal_samples.h"
#include "unidle/experiment/spread.h"
#include "unidle/language/language.h"

namespace unidle::experiment {

/// What a changed run must fulfil.
enum class Demand {
  kSame,    // same arithmetic: the loss is neither higher nor lower
  kAsGood,  // different rounding, or unknown changes: the loss is not higher
  kFinite,  // different effective batch in a run too short to tell more: the loss is finite
};
Demand demand_of(const std::set<std::string>& changed);

enum class Verdict { kEqual, kBetter, kWorse, kNotComparable };

/// The loss, or one metric.
struct Measure {
  std::string name;
  Verdict verdict = Verdict::kNotComparable;
  bool judged = false;  // false: the difference is reported, without consequences
  bool held = true;     // fulfils the demand
  double samples = 0;   // where the two are compared; 0 when only known to be equal
  double a = 0;
  double b = 0;
  double allowed = 0;  // the largest allowed difference; 0 when a difference is only reported
  std::string why;     // for kNotComparable and for values that are not finite
};

/// "loss at 800 samples is 1.2 against 1 (+20 %, allowed 5 %)"
std::string in_words(const Measure& measure, Language language = Language::kEnglish);

struct Parity {
  bool held = true;
  std::string why;                // which measure failed, in words; empty when all held
  std::vector<Measure> measures;  // the loss first, then the metrics that both report, by name

  /// True when there was a loss or a metric to compare.
  bool compared() const;
};

/// Compares runs with a change against runs without, at least one each. `chance`: how far the two may differ without
/// any change, as Spread::of_difference of further runs; it widens every band.
///
/// The loss counts as higher or lower when the difference exceeds each of:
/// - 2 % if the arithmetic is the same, otherwise 5 %;
/// - 1 % of the fall of the loss until then, because near zero a share of the loss is meaningless;
/// - four standard errors, of the runs themselves and of `chance`. Neighbouring steps share a drift, which makes their
///   standard error too small by up to a factor of two.
/// If the noise exceeds a quarter of the loss and no difference shows, the two are not comparable.
///
/// Where the bands come from:
/// - 2 %: a different order of sums (thread counts, algorithms) moves the loss by far less. DeepSeek-V3
///   (arXiv:2412.19437) saw 0.25 % even between FP8 and BF16, over long runs with smoothed losses. Runs of a few
///   hundred steps scatter more. A wrong order of samples or a lost update moves the loss by more.
/// - A lower loss is not a gain when the arithmetic is the same: samples are repeated, or no longer augmented. For the
///   same reason MLPerf Training rejects submissions that converge too fast compared to its reference (rcp_checker).
/// - 5 %: rounding is amplified from step to step. Runs with equal seeds differ by up to 2.9 % in accuracy through the
///   implementation alone, and runs without by up to 10.8 % (Pham et al., ASE 2020).
///
/// Metrics whose name says which direction is better: PSNR may be 0.1 dB lower, the difference that super-resolution
/// papers call visible; a metric that is a loss has the loss's band; any other may be 2 % worse, twice what MLPerf
/// Inference allows (99 % of the FP32 quality), because the runs are short. A better metric never fails.
Parity parity_of(const std::vector<Learned>& before, const std::vector<Learned>& after, Demand demand,
                 const Spread& chance = {}, Language language = Language::kEnglish);

/// Compares the curves of recorded runs; the runs of A among themselves give `chance`.
Parity parity_of(const std::vector<LearningCurves>& a, const std::vector<LearningCurves>& b, Demand demand,
                 Language language = Language::kEnglish);

}  // namespace unidle::experiment
