// The part of CUPTI's activity interface that we use, declared here so that the build needs no CUDA headers. Every
// function is looked up by name at run time. The records have grown with every version; these are the fields that all
// versions since CUDA 9 share, at the offsets given in cupti_activity.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unidle::trace::cupti {

using Result = int;
constexpr Result kSuccess = 0;

// CUpti_ActivityKind
constexpr std::uint32_t kMemcpy = 1;
constexpr std::uint32_t kMemset = 2;
constexpr std::uint32_t kConcurrentKernel = 10;

constexpr std::uint32_t kForcedFlush = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
constexpr std::size_t kAlignment = 8;      // of buffers: ACTIVITY_RECORD_ALIGNMENT

struct Record {
  std::uint32_t kind;
};

/// The common prefix of CUpti_ActivityKernel4 to 10. Times are in ns of cuptiGetTimestamp().
struct KernelRecord {
  std::uint32_t kind;
  std::uint8_t cache_config;
  std::uint8_t shared_memory_config;
  std::uint16_t registers;
  std::uint32_t cache_requested;
  std::uint32_t cache_executed;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::int32_t grid[3];
  std::int32_t block[3];
  std::int32_t static_shared_memory;
  std::int32_t dynamic_shared_memory;
  std::uint32_t local_memory_per_thread;
  std::uint32_t local_memory_total;
  std::uint32_t correlation;
  std::int64_t grid_id;
  const char* name;
};
static_assert(offsetof(KernelRecord, start) == 16 && offsetof(KernelRecord, end) == 24);
static_assert(offsetof(KernelRecord, device) == 40 && offsetof(KernelRecord, name) == 104);

/// The common prefix of CUpti_ActivityMemcpy to 6.
struct CopyRecord {
  std::uint32_t kind;
  std::uint8_t copy_kind;
  std::uint8_t source_kind;
  std::uint8_t target_kind;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
};
static_assert(offsetof(CopyRecord, bytes) == 8 && offsetof(CopyRecord, start) == 16);
static_assert(offsetof(CopyRecord, device) == 32);

/// The common prefix of CUpti_ActivityMemset to 4.
struct FillRecord {
  std::uint32_t kind;
  std::uint32_t value;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
};
static_assert(offsetof(FillRecord, start) == 16 && offsetof(FillRecord, device) == 32);

using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                                 std::size_t valid_bytes);
using Callback = void (*)(void* user, int domain, std::uint32_t id, const void* data);

/// Null for functions that the library lacks.
struct Functions {
  Result (*subscribe)(void** subscriber, Callback callback, void* user) = nullptr;
  Result (*unsubscribe)(void* subscriber) = nullptr;
  Result (*register_callbacks)(BufferRequested requested, BufferCompleted completed) = nullptr;
  Result (*enable)(std::uint32_t kind) = nullptr;
  Result (*disable)(std::uint32_t kind) = nullptr;
  Result (*flush_all)(std::uint32_t flag) = nullptr;
  Result (*next_record)(std::uint8_t* buffer, std::size_t valid_bytes, Record** record) = nullptr;
  Result (*dropped_records)(void* context, std::uint32_t stream, std::size_t* dropped) = nullptr;
  Result (*timestamp)(std::uint64_t* ns) = nullptr;
};

}  // namespace unidle::trace::cupti
