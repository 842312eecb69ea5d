// The layout of a ring file, shared by one writer and one reader. docs/probe-format.md documents it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "unidle/probe/unidle_probe.h"

namespace unidle::probe {

constexpr std::uint64_t kRingMagic = 0x31474e52444e5500;  // "\0UNDRNG1" in the file, little-endian
constexpr std::uint32_t kRingVersion = UNIDLE_PROBE_VERSION;
constexpr std::size_t kHeaderBytes = 4096;
/// 2 MiB of events: enough for a tenth of a second, the collector's period, at 160 000 events a second.
constexpr std::uint64_t kRingCapacity = 16384;
constexpr std::uint64_t kMaxRingCapacity = std::uint64_t{1} << 24;

/// States of `RingHeader::state`; stored in files: do not change.
constexpr std::uint32_t kRingOpen = 1;
constexpr std::uint32_t kRingClosed = 2;

/// The lock by which a ring shows that its writer is alive, `RingHeader::locked`; stored in files: do not change.
constexpr std::uint32_t kRecordLock = 1;  // POSIX, on the first byte
constexpr std::uint32_t kFileLock = 2;    // flock(2)

/// One event in the ring. `event.kind` is valid for both members: they begin alike.
union Slot {
  unidle_event event;
  unidle_step step;
};

/// The first page of a ring file. Head, tail and dropped only grow; event i is in slot i % capacity. The writer owns
/// head and dropped, the reader owns tail; each has its own cache line.
struct RingHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t event_bytes;
  std::uint64_t capacity;  // events, a power of two
  std::uint32_t pid;
  std::uint32_t locked;    // the lock that the writer holds on the file while it lives; 0: none
  std::uint64_t start_ns;  // when the ring was opened, CLOCK_MONOTONIC
  char role[16];           // zero-terminated
  std::atomic<std::uint32_t> state;
  alignas(64) std::atomic<std::uint64_t> head;
  alignas(64) std::atomic<std::uint64_t> tail;
  alignas(64) std::atomic<std::uint64_t> dropped;
  std::uint64_t process_start;  // start of the writer, in clock ticks since boot; 0: unknown
};

static_assert(sizeof(unidle_event) == 64 && sizeof(unidle_step) == 128 && sizeof(Slot) == 128);
static_assert(std::is_trivially_copyable_v<Slot> && offsetof(unidle_step, kind) == offsetof(unidle_event, kind));
static_assert(sizeof(RingHeader) == 256 && sizeof(RingHeader) <= kHeaderBytes);
static_assert(offsetof(RingHeader, state) == 56 && offsetof(RingHeader, head) == 64);
static_assert(offsetof(RingHeader, tail) == 128 && offsetof(RingHeader, dropped) == 192 &&
              offsetof(RingHeader, process_start) == 200);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(std::atomic<std::uint64_t>) == 8);
static_assert((kRingCapacity & (kRingCapacity - 1)) == 0);

constexpr std::size_t ring_file_bytes(std::uint64_t capacity) { return kHeaderBytes + capacity * sizeof(Slot); }

}  // namespace unidle::probe
