// The stages of making an item.
#pragma once

#include <cstddef>

namespace unidle::data {

enum class Stage {
  kRead,     // reading bytes from files
  kDecode,   // decoding pictures
  kAugment,  // turning, resizing, changing colours, normalising
  kGather,   // everything else: copying into the batch, including page faults of memory-mapped files
};
inline constexpr std::size_t kStages = 4;

}  // namespace unidle::data
