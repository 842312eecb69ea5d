#include "unidle/trace/cupti/aggregate.h"

#include <algorithm>
#include <limits>

#include "unidle/trace/summary.h"

namespace unidle::trace::cupti {

namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;
/// Seconds that a record may be late. CUPTI keeps a buffer until it is full while a kernel in it still runs.
constexpr std::int64_t kPatience = 10;
constexpr std::int64_t kLongest_ns = 3600 * kSecond_ns;  // no kernel takes longer: such a record is corrupt
constexpr std::int64_t kLatest_ns = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::size_t kMostNames = 10'000;

}  // namespace

Aggregate::Window* Aggregate::add(std::uint32_t device, std::int64_t begin_ns, std::int64_t end_ns) {
  if (begin_ns <= 0 || end_ns < begin_ns || end_ns > kLatest_ns || end_ns - begin_ns > kLongest_ns) {
    return nullptr;  // a record without times was cut off by the end of the program
  }
  const std::int64_t first = begin_ns / kSecond_ns;
  if (first < first_open_) {
    ++late_;
    return nullptr;
  }
  hand_over(first - kPatience);
  for (std::int64_t second = first; second * kSecond_ns < end_ns; ++second) {
    windows_[{second, device}].busy.add(
        {std::max(begin_ns, second * kSecond_ns), std::min(end_ns, (second + 1) * kSecond_ns)});
  }
  return &windows_[{first, device}];
}

void Aggregate::kernel(std::uint32_t device, std::int64_t begin_ns, std::int64_t end_ns, std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (Window* window = add(device, begin_ns, end_ns)) {
    const auto length_ns = static_cast<double>(end_ns - begin_ns);
    ++window->kernels;
    window->kernel_ns += length_ns;
    window->matrix_ns += on_matrix_units(name) ? length_ns : 0;
  }
}

void Aggregate::copy(std::uint32_t device, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (Window* window = add(device, begin_ns, end_ns)) {
    window->copied_bytes += bytes;
  }
}

void Aggregate::hand_over(std::int64_t before) {
  while (!windows_.empty() && windows_.begin()->first.first < before) {
    auto& [key, window] = *windows_.begin();
    DeviceSecond second;
    second.device = key.second;
    second.begin_ns = key.first * kSecond_ns;
    second.busy_ns = window.busy.joined().total_ns();
    second.kernels = window.kernels;
    second.copied_bytes = window.copied_bytes;
    second.matrix_share =
        window.kernel_ns > 0 ? window.matrix_ns / window.kernel_ns : std::numeric_limits<double>::quiet_NaN();
    first_open_ = std::max(first_open_, key.first + 1);
    emit_(second);
    windows_.erase(windows_.begin());
  }
}

void Aggregate::finish() {
  const std::lock_guard lock(mutex_);
  hand_over(std::numeric_limits<std::int64_t>::max());
}

bool Aggregate::on_matrix_units(std::string_view name) {
  const auto found = names_.find(name);
  if (found != names_.end()) {
    return found->second;
  }
  const bool matrix = uses_matrix_units(name);
  if (names_.size() < kMostNames) {
    names_.emplace(name, matrix);
  }
  return matrix;
}

}  // namespace unidle::trace::cupti
