// Kernels and copies as the driver reports them, 18 bytes each: kind, device, begin and end in ns.
#include <cstdint>
#include <cstring>

#include "fuzz.h"
#include "unidle/trace/cupti/aggregate.h"

namespace unidle::fuzz::targets {

namespace {

void run_device_kernels(std::string_view bytes) {
  std::int64_t busy_ns = 0;
  unidle::trace::cupti::Aggregate aggregate([&](const unidle::trace::cupti::DeviceSecond& second) {
    require(second.busy_ns >= 0 && second.busy_ns <= 1'000'000'000);
    busy_ns += second.busy_ns;
  });
  constexpr std::size_t kRecord = 18;
  for (; bytes.size() >= kRecord; bytes.remove_prefix(kRecord)) {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::memcpy(&begin_ns, bytes.data() + 2, sizeof begin_ns);
    std::memcpy(&end_ns, bytes.data() + 10, sizeof end_ns);
    const auto device = static_cast<std::uint32_t>(bytes[1]);
    if (bytes[0] % 2 == 0) {
      aggregate.kernel(device, begin_ns, end_ns, bytes.substr(0, 40));
    } else {
      aggregate.copy(device, begin_ns, end_ns, static_cast<std::uint64_t>(begin_ns));
    }
  }
  aggregate.finish();
}

}  // namespace

const Target& device_kernels() {
  static const Target kTarget = {"device_kernels", run_device_kernels};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
