// What the record of a trial says: its rate, its losses, what was in force.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/knobs/settings.h"
#include "unidle/tune/advice/reach.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// Fewer steps than this are no measurement.
constexpr std::size_t kLeastSteps = 8;

/// Losses by the number of samples seen before them; not a number where the loss was none.
std::map<long long, double> losses_of(const account::Account& account);

/// Settings that the live program had, by knob; values as it gave them.
knobs::Settings effective_settings(const account::RunData& run);

/// What options of the program may be, where its own parser lists that.
OptionChoices option_choices(const account::RunData& run);

/// Of what the program said of its options, those that set a knob as the command could. What it said counts when it is
/// the program that the last words of the command start, and of an option when its value is what is in effect.
SpareOptions spare_options(const account::RunData& run, const std::vector<std::string>& command,
                           const knobs::Settings& effective);

/// True when batches had more shapes than those of full ones and of a last one.
bool lengths_vary(const account::RunData& run);

/// What was found of the longest samples, by UNIDLE_LONGEST, in words; empty where all are alike or none were looked
/// at.
std::string longest_in(const account::RunData& run);

/// Steps of a run that is to meet the longest samples in the first of them.
constexpr long long kLongestSteps = 16;

/// Fills in what the record of a trial says of it: rate, losses, settings in force, what disturbed it. False, with the
/// problem, where too few steps were seen. `result.seconds` must be set.
bool take_in(const account::RunData& run, experiment::LossScale& scale, TrialResult& result);

}  // namespace unidle::tune
