// Rejects trials that fill the device's memory.
#pragma once

#include "unidle/diagnose/diagnosis.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// Marks a trial of another batch size as failed when memory was full beyond 90 %, or when the allocator had to flush
/// its cache. Sets the problem in `result`.
void refuse_full_memory(const diagnose::Diagnosis& diagnosis, const knobs::Settings& changes, TrialResult& result);

}  // namespace unidle::tune
