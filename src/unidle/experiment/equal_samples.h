// What runs learned, compared at equal numbers of samples.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unidle/experiment/curve.h"

namespace unidle::experiment {

/// What one run reported while training.
struct LearningCurves {
  Curve loss;
  std::size_t not_finite = 0;  // number of non-finite losses, which the curve leaves out
  std::map<std::string, Curve> metrics;
};

/// The losses of two runs, compared over the samples that both have seen.
struct EqualSamples {
  double samples = 0;  // the last point of comparison
  double a = 0;        // mean loss
  double b = 0;
  double error = 0;  // standard error of b - a, estimated from the two runs
  double fall = 0;   // how far the first run's loss had fallen by then
};

/// Compares the last quarter of the samples that both have seen, or the last half when one has fewer than eight losses
/// in the quarter. Both curves are smoothed and compared at the points of the sparser one, at most fifty. Losses that
/// both report at the same samples are also compared directly, and the result with the smaller error counts: runs with
/// the same samples in the same order differ only by rounding and hardly scatter. Nothing when there are too few
/// losses.
std::optional<EqualSamples> at_equal_samples(const Curve& a, const Curve& b);

/// A value with its standard error as estimated from the run; 0 when unknown.
struct Reading {
  double value = 0;
  double error = 0;
  double samples = 0;  // when it was read; 0: at the end of runs of equal length
};

/// What one run learned, on a scale shared with the runs with which it is compared.
struct Learned {
  std::optional<Reading> loss;  // NaN when more of its losses were non-finite than of the first run's
  double loss_fall = 0;         // how far the loss had fallen by then
  std::string why_no_loss;      // empty when there is a loss
  std::map<std::string, Reading> metrics;
};

/// Puts the losses of any number of runs on the scale of the first run. Programs may report losses at different
/// intervals, so each run is compared with the first over their common samples. Not thread-safe.
class LossScale {
 public:
  LossScale() = default;
  explicit LossScale(LearningCurves first) : first_(std::move(first)) {}

  /// Sets the loss of `learned`, or why there is none. Without a first run, the first call with a loss provides it.
  void read(const LearningCurves& run, Learned& learned);

 private:
  LearningCurves first_;
  std::optional<double> level_;  // loss of the first run at its first comparison
};

/// What several runs learned, up to the last samples that all of them saw, on the scale of the first. REQUIRES: not
/// empty.
std::vector<Learned> learned_by(const std::vector<LearningCurves>& runs);

}  // namespace unidle::experiment
