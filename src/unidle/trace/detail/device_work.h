// What ran on the devices of a trace, and the calls that started it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "unidle/trace/detail/host_work.h"

namespace unidle::trace::detail {

enum class WorkKind : std::uint8_t { kKernel, kCommunication, kCopy, kFill };

/// A kernel, copy or fill; times in microseconds, `name` and `stream` are indices of texts.
struct Work {
  double begin = 0;
  double end = 0;
  double bytes = 0;
  std::int64_t correlation = -1;  // of the call that started it; -1 when the trace does not say
  std::uint32_t name = 0;
  std::uint32_t stream = 0;
  WorkKind kind = WorkKind::kKernel;
};

/// The work of one device. Work on one stream runs one after the other: an item that ends later in the trace is cut
/// where the next one begins.
class DeviceWork {
 public:
  void add(const Work& work) { work_.push_back(work); }
  std::size_t size() const { return work_.size(); }
  /// Sorted by begin. REQUIRES: nothing is added afterwards.
  const std::vector<Work>& ordered();

 private:
  std::vector<Work> work_;
  bool ordered_ = false;
};

/// A host call that started work on a device; `thread` is an index of texts.
struct Call {
  std::int64_t correlation = 0;
  double begin = 0;
  double end = 0;
  std::uint32_t thread = 0;
  HostWork kind = HostWork::kLaunch;
  bool by_driver = false;  // the driver's own call, with which generated code (Triton's) launches
};

class Calls {
 public:
  void add(const Call& call);
  /// nullptr when no call has that correlation.
  const Call* find(std::int64_t correlation);

 private:
  std::vector<Call> calls_;
  bool sorted_ = true;
};

}  // namespace unidle::trace::detail
