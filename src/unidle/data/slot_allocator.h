// Allocates the memory of batches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unidle::data {

/// Memory for batch slots; the engine passes an allocator of pinned memory. Called per field and slot when the slot is
/// first needed, and for each field taken out of a batch, by the thread that owns the loader.
class SlotAllocator {
 public:
  virtual ~SlotAllocator() = default;
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory, std::size_t bytes) = 0;
  /// Like release(), for memory that will not be requested again soon.
  virtual void discard(std::byte* memory, std::size_t bytes) { release(memory, bytes); }
  /// Default limit for the memory of all slots.
  virtual std::uint64_t most_bytes() const { return UINT64_MAX; }
};

/// Page-aligned host memory. Thread-safe.
SlotAllocator& host_allocator();

}  // namespace unidle::data
