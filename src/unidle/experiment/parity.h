// Does a changed run learn as well? The one definition, for trials of a search and for records that are compared.
#pragma once

#include <string>
#include <vector>

#include "unidle/experiment/equal_samples.h"
#include "unidle/experiment/spread.h"
#include "unidle/knobs/settings.h"

namespace unidle::experiment {

/// What is asked of a changed run.
enum class Demand {
  kSame,    // the change leaves the arithmetic alone: the loss is neither higher nor lower
  kAsGood,  // it changes rounding, or nobody knows what changed: the loss is not higher
  kFinite,  // it changes the effective batch, in a run that is too short to tell more: the loss is a number
};
Demand demand_of(const knobs::Settings& changes);

enum class Verdict { kEqual, kBetter, kWorse, kNotComparable };

/// The loss, or one metric.
struct Measure {
  std::string name;
  Verdict verdict = Verdict::kNotComparable;
  bool judged = false;  // false: the difference is stated, and nothing follows from it
  bool held = true;     // it is as good as was asked for
  double samples = 0;   // where the two are compared; 0 where only known to be equal
  double a = 0;
  double b = 0;
  double allowed = 0;  // how far apart the two may lie; 0 where a difference is only stated
  std::string why;     // of kNotComparable, and of a value that is no finite number
};

/// "loss at 800 samples is 1.2 against 1 (+20 %, allowed 5 %)"
std::string in_words(const Measure& measure);

struct Parity {
  bool held = true;
  std::string why;                // what broke it, in words; empty when it held
  std::vector<Measure> measures;  // the loss first, then the metrics that both report, by name

  /// There was a loss or a metric to compare.
  bool compared() const;
};

/// Runs with a change against runs without, one at least of each. `chance`: how far the two may differ without any
/// change, Spread::of_difference of further runs; it widens every band.
///
/// The loss counts as higher, or lower, when it differs by more than each of these:
/// - 2 % where the arithmetic is the same, otherwise 5 %;
/// - 1 % of what it fell by until then: near zero a share of the loss means nothing;
/// - four standard errors, of the runs themselves and of `chance`. Neighbouring steps share a drift, so that their
///   standard error is too small by up to a factor of two.
/// When chance hides even a quarter of the loss and no difference shows, the two are not comparable.
///
/// Where the bands come from:
/// - 2 %: sums in another order (thread counts, algorithms) move the loss by far less. DeepSeek-V3 (arXiv:2412.19437)
///   saw 0.25 % even between FP8 and BF16, over long runs with smoothed losses. Runs of some hundred steps
///   scatter more. A wrong order of samples or a lost update moves it by more.
/// - A lower loss is no gain when the arithmetic is the same: samples are repeated, or no longer augmented. MLPerf
///   Training refuses a submission for the same reason when it converges too fast beside its reference (rcp_checker).
/// - 5 %: rounding is amplified from step to step. Through the implementation alone, runs with equal seeds differ by up
///   to 2.9 % in accuracy, and by up to 10.8 % without (Pham et al., ASE 2020).
///
/// Metrics, where the name tells which way is better: PSNR may be 0.1 dB lower, the difference that super-resolution
/// papers call visible; a metric that is a loss has the loss's band; any other may be 2 % worse, twice what MLPerf
/// Inference grants (99 % of the FP32 quality), because the runs are short. A better metric breaks nothing.
Parity parity_of(const std::vector<Learned>& before, const std::vector<Learned>& after, Demand demand,
                 const Spread& chance = {});

/// Records of runs, by their curves: runs of A among themselves tell how far chance goes.
Parity parity_of(const std::vector<LearningCurves>& a, const std::vector<LearningCurves>& b, Demand demand);

}  // namespace unidle::experiment
