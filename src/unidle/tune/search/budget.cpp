#include "unidle/tune/search/budget.h"

namespace unidle::tune {

Budget::Budget(Clock& clock, double seconds, int trials)
    : clock_(clock), start_ns_(clock.now_ns()), seconds_(seconds), trials_(trials) {}

void Budget::expect(double baseline_s, double best_s) {
  baseline_s_ = baseline_s;
  best_s_ = best_s;
}

double Budget::elapsed_s() const { return seconds(clock_.now_ns() - start_ns_); }

bool Budget::allows_run() const { return needed_s() <= seconds_; }

}  // namespace unidle::tune
