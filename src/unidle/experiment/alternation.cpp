#include "unidle/experiment/alternation.h"

#include <algorithm>
#include <cmath>

#include "unidle/base/stats.h"

namespace unidle::experiment {

namespace {

/// A speed below this share of the best so far may be caused by the machine rather than the knob.
constexpr double kSuspicious = 0.85;
/// After this many ratios of neighbouring runs the median decides, even if it is unclear.
constexpr std::size_t kMostRatios = 7;
/// Ratios needed to confirm a change.
constexpr std::size_t kConfirming = 3;
/// In standard errors: a median further than this from the limit is decisive.
constexpr double kClearance = 1;
/// The factor by which scatter grows when other runs lie between two runs.
constexpr double kStale = 1.5;
/// A larger difference between two runs of one setting is an accident rather than scatter.
constexpr double kWidest = 0.2;
/// The ratio of standard deviation to mean absolute deviation in a normal distribution.
constexpr double kOfMeanDeviation = 1.25;
/// Additional runs in total, including disturbed ones.
constexpr int kMostTurns = 9;

}  // namespace

void Scatter::add(const Measurement& before, const Measurement& after) {
  if (comparable(after, before)) {
    apart_.push_back(std::abs(after.rate / before.rate - 1));
  }
}

double Scatter::of_ratio() const {
  double sum = 0;
  for (const double apart : apart_) {
    sum += std::min(apart, kWidest);
  }
  return kOfMeanDeviation * sum / static_cast<double>(apart_.size());
}

Alternation::Alternation(const Measurement& change, const Measurement& reference, bool neighbours, bool confirm)
    : change_(change), reference_(reference), neighbours_(neighbours), confirm_(confirm) {
  if (comparable(change_, reference_)) {
    ratios_.push_back(last_ratio());
    pair();
  }
}

void Alternation::pair() {
  if (!change_is_paired_ && !reference_is_paired_) {
    pairs_.push_back({{reference_.rate, {}}, {change_.rate, {}}});
    change_is_paired_ = reference_is_paired_ = true;
  }
}

bool Alternation::is_open(double limit, const Scatter& scatter, bool disturbed) const {
  if (taken_ >= kMostTurns || ratios_.size() >= kMostRatios) {
    return false;
  }
  if (ratios_.empty() || (confirm_ && ratios_.size() < kConfirming && ratios_.back() > limit)) {
    return true;
  }
  const double middle = median(ratios_);
  const bool slow = ratios_.size() < kConfirming && middle < kSuspicious;
  const bool lucky = confirm_ && middle > limit && *std::min_element(ratios_.begin(), ratios_.end()) < limit;
  const bool stale = !neighbours_ && disturbed;
  const double error = scatter.of_ratio() * (neighbours_ ? 1 : kStale) / std::sqrt(static_cast<double>(ratios_.size()));
  return slow || lucky || stale || std::abs(middle - limit) < kClearance * error;
}

Alternation::Turn Alternation::take(const Measurement& run, Scatter& scatter) {
  Measurement& before = reference_next_ ? reference_ : change_;
  scatter.add(before, run);
  before = run;
  (reference_next_ ? reference_is_paired_ : change_is_paired_) = false;
  if (!neighbours_) {
    ratios_.clear();
    pairs_.clear();
    change_is_paired_ = false;
    neighbours_ = true;
  }
  const Turn turn{last_ratio(), comparable(change_, reference_)};
  if (turn.counts) {
    ratios_.push_back(turn.ratio);
    pair();
  }
  reference_next_ = !reference_next_;
  ++taken_;
  return turn;
}

double Alternation::ratio() const { return ratios_.empty() ? last_ratio() : median(ratios_); }

}  // namespace unidle::experiment
