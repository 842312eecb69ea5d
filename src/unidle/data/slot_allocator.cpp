#include "unidle/data/slot_allocator.h"

#include <algorithm>
#include <new>

namespace unidle::data {

namespace {

constexpr std::size_t kPageBytes = 4096;

class HostAllocator final : public SlotAllocator {
 public:
  std::byte* allocate(std::size_t bytes) override {
    return static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t{kPageBytes}));
  }
  void release(std::byte* memory, std::size_t) override { ::operator delete(memory, std::align_val_t{kPageBytes}); }
};

}  // namespace

SlotAllocator& host_allocator() {
  static HostAllocator allocator;  // stateless
  return allocator;
}

}  // namespace unidle::data
