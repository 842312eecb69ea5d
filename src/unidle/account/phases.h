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

/// Validations that a longer interval does not save.
struct Tests {
  std::int64_t count = 0;
  double seconds = 0;
  bool beside_validations = false;  // it also validates between steps; else this may be the only one of a short run
};

/// Before the first step is finished: a trial of the code, or the model as it was loaded.
Tests dry_runs(const Timeline& timeline);

/// After the last step, beyond what the program validates between steps. Nothing if that takes about as long as between
/// steps: an epoch ends with the last step.
std::optional<Tests> tests_after_training(const Timeline& timeline);

}  // namespace unidle::account
