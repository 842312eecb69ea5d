// What a record holds of a search, as the page's parts read it.
#pragma once

#include <optional>

#include "unidle/account/account.h"
#include "unidle/base/stats.h"
#include "unidle/tune/output/recorded.h"

namespace unidle::report {

tune::Recorded recorded_in(const account::RunData& run);

bool is_rate(double value);

/// Whether the verification showed a gain.
bool proven(const tune::Recorded& recorded);

/// Of the ratio; nothing from too few pairs.
std::optional<Interval> interval_shown(const tune::Verification& found);

std::optional<Interval> scaled(const std::optional<Interval>& interval, double factor);

}  // namespace unidle::report
