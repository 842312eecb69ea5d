// Names of files that are being written.
#pragma once

#include <string_view>

namespace unidle {

/// Between the final name of a file and six letters that make the name unique. A killed process leaves such a file
/// behind.
inline constexpr std::string_view kUnfinished = ".part-";

}  // namespace unidle
