// A change and the best so far run alternately: which of them is faster.
#pragma once

#include <vector>

#include "unidle/experiment/measurement.h"

namespace unidle::experiment {

/// How far two runs of one setting lie apart, as the search has seen it. Not thread-safe.
class Scatter {
 public:
  /// Two runs of one setting with one of another between them.
  void add(const Measurement& before, const Measurement& after);
  /// Standard deviation of the ratio of two runs one after the other.
  double of_ratio() const;

 private:
  std::vector<double> apart_ = {0.02, 0.02};  // relative; at first what is usual
};

/// What one trial leaves open, or says in favour of a change that needs confirming, is decided by alternating runs of
/// both, each compared with its neighbours only, so that a machine that gets slower meanwhile is no argument. Not
/// thread-safe.
class Alternation {
 public:
  /// `neighbours`: the two ran one after the other. `confirm`: a single run in favour is not enough.
  Alternation(const Measurement& change, const Measurement& reference, bool neighbours, bool confirm);

  /// A further turn is needed to tell on which side of `limit` the ratio lies. `disturbed`: the newest run was.
  bool is_open(double limit, const Scatter& scatter, bool disturbed) const;
  bool reference_is_next() const { return reference_next_; }

  struct Turn {
    double ratio = 1;
    bool counts = false;  // others did not use the CPUs during one of the two only
  };
  /// One more run, of the reference or the change, whichever is next; it makes a ratio with the run before it.
  Turn take(const Measurement& run, Scatter& scatter);

  /// The change's speed by the reference's: the median of what counts.
  double ratio() const;
  const Measurement& change() const { return change_; }        // the newest
  const Measurement& reference() const { return reference_; }  // the same of the best so far
  int taken() const { return taken_; }
  std::size_t counted() const { return ratios_.size(); }

 private:
  double last_ratio() const { return change_.rate / reference_.rate; }

  Measurement change_;
  Measurement reference_;
  std::vector<double> ratios_;
  bool neighbours_;  // the ratios are of runs one after the other; otherwise the only one is to an older run
  bool confirm_;
  bool reference_next_ = true;
  int taken_ = 0;
};

}  // namespace unidle::experiment
