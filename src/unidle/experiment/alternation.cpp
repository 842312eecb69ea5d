#include "unidle/experiment/alternation.h"

#include <algorithm>
#include <cmath>

#include "unidle/base/stats.h"

namespace unidle::experiment {

namespace {

/// Less than this share of the speed of the best so far may be the machine's doing rather than a knob's.
constexpr double kSuspicious = 0.85;
/// Ratios of neighbouring runs after which the median decides, however far apart they are.
constexpr std::size_t kMostRatios = 7;
/// Ratios with which a second run of a change comes in.
constexpr std::size_t kConfirming = 3;
/// Standard errors: a median that is further than this from the limit decides.
constexpr double kClearance = 1;
/// How much further than neighbours two runs are apart that have others between them.
constexpr double kStale = 1.5;
/// Two runs of one setting that are further apart than this tell of an accident rather than of the usual scatter.
constexpr double kWidest = 0.2;
/// The standard deviation of a normal distribution for a mean absolute deviation of 1.
constexpr double kOfMeanDeviation = 1.25;
/// Alternation in all, those that say nothing with them.
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
  if (!neighbours_) {
    ratios_.clear();
    neighbours_ = true;
  }
  const Turn turn{last_ratio(), comparable(change_, reference_)};
  if (turn.counts) {
    ratios_.push_back(turn.ratio);
  }
  reference_next_ = !reference_next_;
  ++taken_;
  return turn;
}

double Alternation::ratio() const { return ratios_.empty() ? last_ratio() : median(ratios_); }

}  // namespace unidle::experiment
