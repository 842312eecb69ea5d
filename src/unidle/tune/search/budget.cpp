#include "unidle/tune/search/budget.h"

#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"

namespace unidle::tune {

namespace {

/// A run that is nearly done when the time is over may end, as a share of the total.
constexpr double kTolerance = 0.1;
/// A trial may take this many times as long as a run of the best settings, whatever is kept back.
constexpr double kSlowTrial = 1.5;
/// A run is given at least this long.
constexpr double kShortestRun_s = 1;

}  // namespace

Budget::Budget(Clock& clock, double seconds, int trials, double spent_s)
    : clock_(clock), start_ns_(clock.now_ns() - nanoseconds(spent_s)), seconds_(seconds), trials_(trials) {}

void Budget::expect(double baseline_s, double best_s, int fresh_pairs) {
  baseline_s_ = baseline_s;
  best_s_ = best_s;
  fresh_pairs_ = fresh_pairs;
}

double Budget::limit_s() const { return std::max(kShortestRun_s, seconds_ * (1 + kTolerance) - elapsed_s()); }

double Budget::limit_of_trial_s() const {
  return std::min(limit_s(), std::max(kSlowTrial * best_s_, seconds_ - elapsed_s() - kept_back_s()));
}

int Budget::runs_left() const {
  const double left_s = seconds_ - elapsed_s() - kept_back_s();
  return best_s_ > 0 ? static_cast<int>(std::clamp(std::floor(left_s / best_s_), 0.0, double{trials_ - 1.0})) : 0;
}

double Budget::elapsed_s() const { return seconds(clock_.now_ns() - start_ns_); }

bool Budget::allows_run() const { return needed_s() <= seconds_; }

}  // namespace unidle::tune
