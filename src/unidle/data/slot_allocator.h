// Where the memory of batches comes from.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unidle::data {

/// Memory for batch slots; the engine passes one that gives pinned memory. Called once a field and slot, when the slot
/// is first needed, and for each field that is taken out of a batch; by the thread that makes and asks the loader.
class SlotAllocator {
 public:
  virtual ~SlotAllocator() = default;
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory, std::size_t bytes) = 0;
  /// As release(), of memory that nobody will ask for again soon.
  virtual void discard(std::byte* memory, std::size_t bytes) { release(memory, bytes); }
  /// That slots take of it together, at most, where the loader is not told otherwise.
  virtual std::uint64_t most_bytes() const { return UINT64_MAX; }
};

/// Page-aligned host memory. Thread-safe.
SlotAllocator& host_allocator();

}  // namespace unidle::data
