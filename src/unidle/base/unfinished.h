// What a file is called while it is written.
#pragma once

#include <string_view>

namespace unidle {

/// Between the name that a file is to have and six letters that make it a name of its own. A process that is killed
/// leaves such a file behind.
inline constexpr std::string_view kUnfinished = ".part-";

}  // namespace unidle
