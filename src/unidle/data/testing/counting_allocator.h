// A slot allocator that counts its blocks.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <map>

#include "unidle/base/error.h"
#include "unidle/data/slot_allocator.h"

namespace unidle::data::testing {

/// Counts allocations and fails on request.
class CountingAllocator final : public SlotAllocator {
 public:
  std::byte* allocate(std::size_t bytes) override {
    if (static_cast<int>(sizes_.size()) == fail_at) {
      throw Error(ErrorCode::kOutOfMemory, "slot", "no memory");
    }
    std::byte* memory = new std::byte[bytes];
    sizes_[memory] = bytes;
    ++allocations;
    return memory;
  }
  void release(std::byte* memory, std::size_t bytes) override {
    EXPECT_EQ(sizes_.at(memory), bytes);
    sizes_.erase(memory);
    delete[] memory;
  }
  bool all_released() const { return sizes_.empty(); }

  std::size_t out() const { return sizes_.size(); }
  std::size_t bytes_out() const {
    std::size_t bytes = 0;
    for (const auto& [memory, size] : sizes_) {
      bytes += size;
    }
    return bytes;
  }

  int allocations = 0;
  int fail_at = -1;

 private:
  std::map<std::byte*, std::size_t> sizes_;
};

}  // namespace unidle::data::testing
