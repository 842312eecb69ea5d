// How a run develops while it trains: whether steps become slower and memory grows.
#pragma once

#include <vector>

#include "unidle/account/account.h"
#include "unidle/account/run_data.h"
#include "unidle/diagnose/signals.h"

namespace unidle::diagnose::detail {

/// Fills signals.development, given enough steps after warm-up.
void read_development(const account::RunData& run, const account::Account& account, Signals& signals);

/// True when the last value is above the first, few values are below an earlier one, and no single jump explains it.
bool grows_steadily(const std::vector<double>& fifths);

}  // namespace unidle::diagnose::detail
