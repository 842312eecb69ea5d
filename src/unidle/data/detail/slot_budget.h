// How many slots a loader has.
#pragma once

#include <cstdint>

#include "unidle/data/detail/plan.h"
#include "unidle/data/loader.h"

namespace unidle::data::detail {

/// As many as `workers` with the options' prefetch, and as few as their memory is allowed. Throws kUsage where
/// `max_bytes` is given and has no room for the least.
std::int64_t slot_count(const Source& source, const LoaderOptions& options, const Plan& plan, int workers);
/// A slot for the batch that is taken and one for the next, and those that an item reaches beyond its first.
std::int64_t least_slots(const Plan& plan);

}  // namespace unidle::data::detail
