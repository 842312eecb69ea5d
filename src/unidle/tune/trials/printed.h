// Reading what a training program prints at its end.
#pragma once

#include <string_view>

#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// Fills rate, loss, metrics and effective knobs from the summary document, which is the last line of `output` that is
/// a JSON object. `with_validation` takes the rate with validation counted in, where the document has it. Sets `ok`,
/// or `problem` when there is no such document or no rate in it.
void read_summary(std::string_view output, bool with_validation, TrialResult& result);

}  // namespace unidle::tune
