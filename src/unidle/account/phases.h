// The phases of a run.
#pragma once

#include "unidle/account/timeline.h"

namespace unidle::account {

struct PhaseTimes {  // seconds; sums to the wall time of the run
  double startup = 0;
  double train = 0;
  double validate = 0;
  double checkpoint = 0;
  double other = 0;
};

/// What no step or span covers after start-up is `other`.
PhaseTimes phase_times(const Timeline& timeline);

/// When start-up is over; the beginning of the run where nothing tells.
std::int64_t start_of_training_ns(const Timeline& timeline);

}  // namespace unidle::account
