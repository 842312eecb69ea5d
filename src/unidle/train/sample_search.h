// Which samples of a step are at fault.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unidle/data/loader.h"

namespace unidle::train {

/// The first value that is NaN or an infinity in each of the samples that have one, by the names that the source gives
/// them, among the `count` samples that a loader with these options delivers from its start. Reads them once more, in
/// this thread.
std::vector<std::string> find_not_finite(const data::Source& source, data::LoaderOptions options, std::int64_t count);

/// "items 3, 17 and 4 more", of all that are delivered.
std::string name_items(const data::Source& source, data::LoaderOptions options, std::int64_t count);

}  // namespace unidle::train
