// What runs learned, at equal numbers of samples.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unidle/experiment/curve.h"

namespace unidle::experiment {

/// What one run reported while it trained.
struct LearningCurves {
  Curve loss;
  std::size_t not_finite = 0;  // losses that were no finite number; the curve is without them
  std::map<std::string, Curve> metrics;
};

/// The losses of two runs, compared where both have seen the same samples.
struct EqualSamples {
  double samples = 0;  // the last place at which they are compared
  double a = 0;        // mean loss
  double b = 0;
  double error = 0;  // standard error of b - a, as far as the two runs themselves tell it
  double fall = 0;   // how far the first run's loss came down until then
};

/// Compares the last quarter of the samples that both have seen; where one has fewer than eight losses there, the last
/// half. Both curves are smoothed and compared at the points of the one that was read less often, at most at fifty.
/// Losses that both report at the same samples are compared one by one as well, and the surer of the two results
/// counts: runs with the same samples in the same order differ by rounding alone, and hardly scatter. Nothing when
/// there are too few losses.
std::optional<EqualSamples> at_equal_samples(const Curve& a, const Curve& b);

/// A value with the standard error that the run itself tells: 0 where it tells none.
struct Reading {
  double value = 0;
  double error = 0;
  double samples = 0;  // when it was read; 0: at the end of runs of the same length
};

/// What one run learned, on a scale that it shares with the runs it is compared with.
struct Learned {
  std::optional<Reading> loss;  // not a number when the run's loss stopped being one
  double loss_fall = 0;         // by how much the loss came down before
  std::string why_no_loss;      // empty when there is one
  std::map<std::string, Reading> metrics;
};

/// Puts the losses of any number of runs on the scale of a first run. A program may report its loss less often in one
/// run than in another, so that each is compared with the first where both have one. Not thread-safe.
class LossScale {
 public:
  LossScale() = default;
  explicit LossScale(LearningCurves first) : first_(std::move(first)) {}

  /// Fills in the loss of `learned`, and why there is none. Without a first run, the first
  /// call with a loss gives it.
  void read(const LearningCurves& run, Learned& learned);

 private:
  LearningCurves first_;
  std::optional<double> level_;  // of the first run, at its first comparison
};

/// What several runs learned, up to the last samples that all of them saw. The first is the scale. REQUIRES: not empty.
std::vector<Learned> learned_by(const std::vector<LearningCurves>& runs);

}  // namespace unidle::experiment
