// Alternates runs of a change and of the best setting so far to decide which is faster.
#pragma once

#include <vector>

#include "unidle/experiment/measurement.h"
#include "unidle/experiment/ratio.h"

namespace unidle::experiment {

/// The scatter between runs of one setting, as observed by a search. Not thread-safe.
class Scatter {
 public:
  /// Adds two runs of one setting, between which a run of another took place.
  void add(const Measurement& before, const Measurement& after);
  /// Standard deviation of the ratio of two successive runs.
  double of_ratio() const;

 private:
  std::vector<double> apart_ = {0.02, 0.02};  // relative differences, starting with typical ones
};

/// Settles what a single trial leaves open, or confirms a change that looks faster, by alternating runs of both
/// settings. Each run is compared only with its neighbours, so that a machine that slows down gradually does not bias
/// the result. Not thread-safe.
class Alternation {
 public:
  /// `neighbours`: the two runs were successive. `confirm`: a single run in favour of the change is not enough.
  Alternation(const Measurement& change, const Measurement& reference, bool neighbours, bool confirm);

  /// True when another run is needed to tell on which side of `limit` the ratio lies. `disturbed`: other processes used
  /// the CPUs during the newest run.
  bool is_open(double limit, const Scatter& scatter, bool disturbed) const;
  bool reference_is_next() const { return reference_next_; }

  struct Turn {
    double ratio = 1;
    bool counts = false;  // false when other processes used the CPUs during only one of the two runs
  };
  /// Adds a run of the reference or the change, whichever is next, and compares it with the run before it.
  Turn take(const Measurement& run, Scatter& scatter);

  /// Speed of the change relative to the reference: the median of the ratios that count.
  double ratio() const;
  const Measurement& change() const { return change_; }        // newest run
  const Measurement& reference() const { return reference_; }  // newest run of the best setting so far
  /// Pairs of runs that follow each other, each run in one pair only.
  const std::vector<PairOfRates>& pairs() const { return pairs_; }
  int taken() const { return taken_; }
  std::size_t counted() const { return ratios_.size(); }

 private:
  double last_ratio() const { return change_.rate / reference_.rate; }
  void pair();

  Measurement change_;
  Measurement reference_;
  std::vector<double> ratios_;
  std::vector<PairOfRates> pairs_;
  bool change_is_paired_ = false;
  bool reference_is_paired_ = false;
  bool neighbours_;  // ratios are of successive runs; otherwise the only one refers to an older run
  bool confirm_;
  bool reference_next_ = true;
  int taken_ = 0;
};

}  // namespace unidle::experiment
