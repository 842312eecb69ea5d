// What a run learned, as experiments compare it.
#pragma once

#include "unidle/account/losses.h"
#include "unidle/experiment/equal_samples.h"

namespace unidle::report {

experiment::LearningCurves learning_curves(const account::RunData& run);

}  // namespace unidle::report
