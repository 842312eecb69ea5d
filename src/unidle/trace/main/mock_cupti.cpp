// libunidle_mock_cupti.so: the part of CUPTI that we use, for tests without a device. $UNIDLE_MOCK_CUPTI selects a
// fault: "held" (another tool has the subscription), "kinds" (activities cannot be enabled), "full" (records are
// dropped), "set" (its clock is set an hour forward after the first read). The first flush delivers two kernels, a copy
// and a fill of device 1, in buffers requested as the real CUPTI does. "few": each requested flush delivers one kernel,
// a minute after the previous one; like the real CUPTI it delivers no buffer on its own that is not full.
#include <time.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "unidle/trace/cupti/abi.h"

namespace {

using namespace unidle::trace::cupti;

constexpr int kHeld = 39;           // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
constexpr int kRefused = 35;        // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
constexpr int kNoMore = 12;         // CUPTI_ERROR_MAX_LIMIT_REACHED
constexpr std::size_t kSlot = 192;  // bytes of each record in the mock's buffers

BufferRequested asked = nullptr;
BufferCompleted done = nullptr;
bool given = false;
std::atomic<std::uint64_t> ahead_s{3600};  // ahead of CLOCK_MONOTONIC

bool wrong(std::string_view what) {
  const char* script = std::getenv("UNIDLE_MOCK_CUPTI");
  return script != nullptr && what == script;
}

/// A clock different from the system's.
std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (static_cast<std::uint64_t>(now.tv_sec) + ahead_s) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

template <typename Kind>
void put(std::uint8_t* buffer, std::size_t& at, const Kind& record) {
  std::memcpy(buffer + at, &record, sizeof record);
  at += kSlot;
}

std::size_t fill(std::uint8_t* buffer) {
  // In the middle of a second, so that nothing spans two.
  const std::uint64_t begin = now_ns() / 1'000'000'000 * 1'000'000'000 - 500'000'000;
  std::size_t at = 0;
  KernelRecord kernel{};
  kernel.kind = kConcurrentKernel;
  kernel.device = 1;
  kernel.name = "nvjet_hsh_256x128";
  kernel.start = begin;
  kernel.end = begin + 3'000'000;
  put(buffer, at, kernel);
  kernel.name = "vectorized_add";
  kernel.start = begin + 2'000'000;  // overlaps the first kernel
  kernel.end = begin + 3'000'000;
  put(buffer, at, kernel);
  CopyRecord copy{};
  copy.kind = kMemcpy;
  copy.device = 1;
  copy.bytes = 4096;
  copy.start = begin + 5'000'000;
  copy.end = begin + 6'000'000;
  put(buffer, at, copy);
  FillRecord zero{};
  zero.kind = kMemset;
  zero.device = 1;
  zero.start = begin + 6'000'000;
  zero.end = begin + 7'000'000;
  put(buffer, at, zero);
  put(buffer, at, Record{77});  // of a kind that was not enabled
  return at;
}

std::size_t one_more(std::uint8_t* buffer) {
  static std::uint64_t number = 0;
  std::size_t at = 0;
  KernelRecord kernel{};
  kernel.kind = kConcurrentKernel;
  kernel.device = 1;
  kernel.name = "vectorized_add";
  kernel.start = (now_ns() / 1'000'000'000 + 60 * ++number) * 1'000'000'000;
  kernel.end = kernel.start + 3'000'000;
  put(buffer, at, kernel);
  return at;
}

}  // namespace

extern "C" {
Result cuptiSubscribe(void** subscriber, Callback, void*) {
  *subscriber = &given;
  given = false;
  ahead_s = 3600;
  return wrong("held") ? kHeld : kSuccess;
}
Result cuptiUnsubscribe(void*) { return kSuccess; }
Result cuptiActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  asked = requested;
  done = completed;
  return kSuccess;
}
Result cuptiActivityEnable(std::uint32_t) { return wrong("kinds") ? kRefused : kSuccess; }
Result cuptiActivityDisable(std::uint32_t) { return kSuccess; }
Result cuptiGetTimestamp(std::uint64_t* ns) {
  *ns = now_ns();
  if (wrong("set")) {
    ahead_s = 7200;
  }
  return kSuccess;
}
Result cuptiActivityFlushAll(std::uint32_t) {
  const bool few = wrong("few");
  if ((given && !few) || asked == nullptr) {
    return kSuccess;
  }
  given = true;
  std::uint8_t* buffer = nullptr;
  std::size_t bytes = 0;
  std::size_t most = 1;
  asked(&buffer, &bytes, &most);
  if (buffer != nullptr && bytes >= 8 * kSlot) {
    done(nullptr, 0, buffer, bytes, few ? one_more(buffer) : fill(buffer));
  }
  return kSuccess;
}
Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes, Record** record) {
  std::uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + kSlot;
  if (next >= buffer + valid_bytes) {
    return kNoMore;
  }
  *record = reinterpret_cast<Record*>(next);
  return kSuccess;
}
Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
  *dropped = wrong("full") ? 3 : 0;
  return kSuccess;
}
}
