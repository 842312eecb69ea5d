// Trials that fill the memory of the device are no way to train.
#pragma once

#include "unidle/diagnose/diagnosis.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// A trial of another batch size that left no margin in memory counts as failed: full beyond 90 %, or the allocator had
/// to flush its cache to go on. Says so in `result`.
void refuse_full_memory(const diagnose::Diagnosis& diagnosis, const knobs::Settings& changes, TrialResult& result);

}  // namespace unidle::tune
