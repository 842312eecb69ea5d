// Finds the samples of a step that are not finite.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unidle/data/loader.h"

namespace unidle::train {

/// For each sample with a NaN or an infinity, the first such value with the sample's name in the source; searches the
/// `count` samples that a loader with these options delivers first. Reads them again, in this thread.
std::vector<std::string> find_not_finite(const data::Source& source, data::LoaderOptions options, std::int64_t count);

/// "items 3, 17 and 4 more", of all delivered items.
std::string name_items(const data::Source& source, data::LoaderOptions options, std::int64_t count);

}  // namespace unidle::train
