// Reads what a training program prints at its end.
#pragma once

#include <string_view>

#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// Fills in rate, loss, metrics and effective knobs from the summary document, the last line of `output` that is a JSON
/// object. `with_validation` selects the rate that includes validation, if present. Sets `ok`, or `problem` when there
/// is no such document or rate.
void read_summary(std::string_view output, bool with_validation, TrialResult& result);

}  // namespace unidle::tune
