// How a run develops while it trains: whether steps become slower and memory grows.
#pragma once

#include "unidle/account/account.h"
#include "unidle/account/run_data.h"
#include "unidle/diagnose/signals.h"

namespace unidle::diagnose::detail {

void read_development(const account::RunData& run, const account::Account& account, Signals& signals);

/// True when nearly all values are larger than those before, and the growth is no single jump.
bool grows_steadily(const std::vector<double>& fifths);

}  // namespace unidle::diagnose::detail
