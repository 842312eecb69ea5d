// What a run learned: its losses and metrics against the samples it had seen.
#pragma once

#include "unidle/experiment/equal_samples.h"
#include "unidle/report/run.h"

namespace unidle::report {

/// The losses of the steps, and the metric "loss": a loss that is read back long after its step is recorded as that.
experiment::LearningCurves learning_curves(const RunData& run);

}  // namespace unidle::report
