#include "unidle/tune/trials/memory_watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "unidle/telemetry/host.h"
#include "unidle/telemetry/host_state.h"

namespace unidle::tune {

namespace {

constexpr std::uint64_t kLeastKept = 256ULL << 20;
constexpr std::uint64_t kMostKept = 4ULL << 30;
constexpr std::uint64_t kShareKept = 20;
constexpr std::chrono::milliseconds kInterval(250);

}  // namespace

std::optional<std::uint64_t> memory_left(const std::filesystem::path& root) {
  std::optional<std::uint64_t> left = telemetry::read_memory_state(root).available_bytes;
  const auto limit = telemetry::read_cgroup_limits(root).memory_bytes;
  const auto used = telemetry::read_cgroup_use(root).memory_bytes;
  if (limit && used) {
    const std::uint64_t of_group = *limit > *used ? *limit - *used : 0;
    left = std::min(left.value_or(of_group), of_group);
  }
  return left;
}

std::uint64_t memory_to_keep(const std::filesystem::path& root) {
  const telemetry::HostFacts host = telemetry::read_host_facts(root);
  const std::uint64_t all = std::min(host.memory_bytes, host.memory_limit.value_or(host.memory_bytes));
  return std::clamp(all / kShareKept, kLeastKept, kMostKept);
}

MemoryWatch::MemoryWatch(std::stop_source& ending)
    : thread_([this, &ending](const std::stop_token& done) {
        const std::uint64_t keep = memory_to_keep();
        std::mutex mutex;
        std::condition_variable_any wake;
        std::unique_lock lock(mutex);
        while (!wake.wait_for(lock, done, kInterval, [&] { return done.stop_requested(); })) {
          if (const auto left = memory_left(); left && *left < keep) {
            tripped_ = true;
            ending.request_stop();
            return;
          }
        }
      }) {}

}  // namespace unidle::tune
