// What a run learned, in the form in which experiments compare runs.
#pragma once

#include "unidle/account/losses.h"
#include "unidle/experiment/equal_samples.h"

namespace unidle::report {

experiment::LearningCurves learning_curves(const account::RunData& run);

}  // namespace unidle::report
