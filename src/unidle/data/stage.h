// What making an item consists of.
#pragma once

#include <cstddef>

namespace unidle::data {

enum class Stage {
  kRead,     // bytes out of files
  kDecode,   // pictures out of bytes
  kAugment,  // turning, resizing, colours, normalising
  kGather,   // all else: copying into the batch, with what memory-mapped files bring in meanwhile
};
inline constexpr std::size_t kStages = 4;

}  // namespace unidle::data
