#include "unidle/trace/detail/device_work.h"

#include <algorithm>
#include <tuple>

namespace unidle::trace::detail {

namespace {

constexpr std::size_t kMostCalls = 10'000'000;

}  // namespace

const std::vector<Work>& DeviceWork::ordered() {
  if (ordered_) {
    return work_;
  }
  std::sort(work_.begin(), work_.end(), [](const Work& a, const Work& b) {
    return std::tie(a.stream, a.begin, a.end) < std::tie(b.stream, b.begin, b.end);
  });
  for (std::size_t i = 0; i + 1 < work_.size(); ++i) {
    const Work& next = work_[i + 1];
    if (next.stream == work_[i].stream && next.begin > work_[i].begin) {
      work_[i].end = std::min(work_[i].end, next.begin);
    }
  }
  std::stable_sort(work_.begin(), work_.end(), [](const Work& a, const Work& b) { return a.begin < b.begin; });
  ordered_ = true;
  return work_;
}

void Calls::add(const Call& call) {
  if (calls_.size() < kMostCalls) {
    calls_.push_back(call);
    sorted_ = false;
  }
}

const Call* Calls::find(std::int64_t correlation) {
  if (!sorted_) {
    std::stable_sort(calls_.begin(), calls_.end(),
                     [](const Call& a, const Call& b) { return a.correlation < b.correlation; });
    sorted_ = true;
  }
  const auto found = std::lower_bound(calls_.begin(), calls_.end(), correlation,
                                      [](const Call& call, std::int64_t at) { return call.correlation < at; });
  return found != calls_.end() && found->correlation == correlation ? &*found : nullptr;
}

}  // namespace unidle::trace::detail
