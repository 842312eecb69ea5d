// The phases of a run.
#pragma once

#include "unidle/account/timeline.h"

namespace unidle::account {

struct PhaseTimes {  // seconds; the sum is the wall time of the run
  double startup = 0;
  double train = 0;
  double validate = 0;
  double checkpoint = 0;
  double other = 0;
};

/// Time after start-up that no step or span covers is `other`. A run that made an optimiser and finished no step is
/// start-up.
PhaseTimes phase_times(const Timeline& timeline);

/// The part of `other` that comes after the last step; zero without steps.
double after_training_s(const Timeline& timeline);

}  // namespace unidle::account
