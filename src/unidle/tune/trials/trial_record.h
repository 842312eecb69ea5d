// What a trial's record contains: rate, losses, effective settings.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/knobs/settings.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// Fewer steps are not a measurement.
constexpr std::size_t kLeastSteps = 8;

/// Losses by the number of samples seen before them; NaN for a non-finite loss.
std::map<long long, double> losses_of(const account::Account& account);

/// Settings of the live program, by knob, with values as it reported them.
ReportedSettings effective_settings(const account::RunData& run);

/// Those that are knobs, with a valid value of the knob.
knobs::Settings known_settings(const ReportedSettings& reported);

/// True when batches had more shapes than full batches and a last one.
bool lengths_vary(const account::RunData& run);

/// What UNIDLE_LONGEST found about the longest samples, in words; empty when all are equally long or none were
/// examined.
std::string longest_in(const account::RunData& run);

/// Steps of a run whose first batch has the longest samples.
constexpr long long kLongestSteps = 16;

/// Sets what a trial's record shows: rate, losses, effective settings, disturbances. False, with `problem` set, when
/// too few steps were seen. REQUIRES: `result.seconds` is set.
bool read_trial(const account::RunData& run, experiment::LossScale& scale, TrialResult& result);

}  // namespace unidle::tune
