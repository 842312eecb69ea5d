// Chooses the number of a loader's slots.
#pragma once

#include <cstdint>

#include "unidle/data/detail/plan.h"
#include "unidle/data/loader.h"

namespace unidle::data::detail {

/// Enough for `workers` with the options' prefetch, but within the memory limit. Throws kUsage when `max_bytes` is
/// given and too small for the minimum.
std::int64_t slot_count(const Source& source, const LoaderOptions& options, const Plan& plan, int workers);
/// One slot for the delivered batch, one for the next, and those that an item extends into after its first.
std::int64_t least_slots(const Plan& plan);

}  // namespace unidle::data::detail
