// Device activity aggregated per second.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "unidle/trace/detail/ranges.h"

namespace unidle::trace::cupti {

/// One second of one device. Times are in ns of CLOCK_MONOTONIC.
struct DeviceSecond {
  std::uint32_t device = 0;
  std::int64_t begin_ns = 0;
  std::int64_t busy_ns = 0;  // union of kernels, copies and fills
  std::uint64_t kernels = 0;
  std::uint64_t copied_bytes = 0;
  double matrix_share = 0;  // of the kernels' time; NaN without kernels
};

/// Thread-safe. Emits a second, with the lock held, once an activity was seen that began ten seconds later. Activities
/// that arrive later still are counted and dropped.
class Aggregate {
 public:
  using Emit = std::function<void(const DeviceSecond&)>;
  explicit Aggregate(Emit emit) : emit_(std::move(emit)) {}

  void kernel(std::uint32_t device, std::int64_t begin_ns, std::int64_t end_ns, std::string_view name);
  /// A copy, or a fill (0 bytes).
  void copy(std::uint32_t device, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t bytes);
  /// Emits all seconds that are still held.
  void finish();
  std::uint64_t late() const { return late_; }

 private:
  struct Window {
    detail::GatheredRanges busy;
    std::uint64_t kernels = 0;
    std::uint64_t copied_bytes = 0;
    double kernel_ns = 0;
    double matrix_ns = 0;
  };
  using Key = std::pair<std::int64_t, std::uint32_t>;  // second, device

  Window* add(std::uint32_t device, std::int64_t begin_ns, std::int64_t end_ns);
  void hand_over(std::int64_t before);
  bool on_matrix_units(std::string_view name);

  std::mutex mutex_;
  Emit emit_;
  std::map<Key, Window> windows_;
  std::int64_t first_open_ = 0;  // seconds before this one have been emitted
  std::uint64_t late_ = 0;
  std::map<std::string, bool, std::less<>> names_;
};

}  // namespace unidle::trace::cupti
