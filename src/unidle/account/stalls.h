// Stalls that come back: a few steps take many times as long as the others, at regular intervals.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "unidle/account/steps.h"

namespace unidle::account {

struct Stalls {
  std::size_t count = 0;
  double each_s = 0;        // the median of what such a step takes beyond a usual one
  double total_s = 0;       // of all of them
  double usual_step_s = 0;  // with the time until the next step
  Part part = kOther;       // in which most of that lies; the time between steps counts as kOther
  std::optional<double> every_steps;
  std::optional<double> every_s;  // one of the two
};

/// Of the counted steps; nothing when no stall comes back regularly.
std::optional<Stalls> stalls(const Timeline& timeline, const std::vector<Period>& periods);

}  // namespace unidle::account
