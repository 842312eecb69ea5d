// Which samples of a step are at fault.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unidle/data/loader.h"

namespace unidle::train {

struct UnfitSample {
  std::int64_t item;  // of the source
  std::string field;
};

/// The samples that have NaN or an infinity, among the `count` that a loader with these options delivers from its
/// start. Reads them once more, in this thread.
std::vector<UnfitSample> find_not_finite(const data::Source& source, data::LoaderOptions options, std::int64_t count);

/// "items 3, 17 and 4 more", of all that are delivered.
std::string name_items(const data::Source& source, data::LoaderOptions options, std::int64_t count);

}  // namespace unidle::train
