#include "unidle/tune/search/budget.h"

#include "unidle/base/units.h"

namespace unidle::tune {

Budget::Budget(Clock& clock, double seconds, int trials, double spent_s)
    : clock_(clock), start_ns_(clock.now_ns() - nanoseconds(spent_s)), seconds_(seconds), trials_(trials) {}

void Budget::expect(double baseline_s, double best_s) {
  baseline_s_ = baseline_s;
  best_s_ = best_s;
}

double Budget::elapsed_s() const { return seconds(clock_.now_ns() - start_ns_); }

bool Budget::allows_run() const { return needed_s() <= seconds_; }

}  // namespace unidle::tune
