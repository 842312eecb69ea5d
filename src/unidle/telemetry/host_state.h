// The current state of this machine: memory, pressure, throttling by cgroup, storage. All files are read under
// host_root().
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/files.h"

namespace unidle::telemetry {

struct MemoryState {
  std::optional<std::uint64_t> available_bytes;  // of the machine, by the kernel's estimate
  std::optional<std::uint64_t> swap_used_bytes;
  std::optional<std::uint64_t> shm_bytes;  // size of /dev/shm, through which loader processes pass batches
  std::optional<std::uint64_t> shm_free_bytes;
};
MemoryState read_memory_state(const std::filesystem::path& root = host_root());

/// Pressure stall information: seconds in which some task was stalled, since boot; absent before Linux 4.20.
struct Pressure {
  double some_s = 0;
  std::optional<double> some_10s;  // 0..1 over the last ten seconds
};
/// `resource`: "cpu", "io" or "memory".
std::optional<Pressure> read_pressure(std::string_view resource, const std::filesystem::path& root = host_root());

/// What this process's cgroup has used and how often its quota stopped it, from its most throttled ancestor.
struct CgroupUse {
  std::optional<std::uint64_t> periods;            // scheduling periods
  std::optional<std::uint64_t> throttled_periods;  // periods in which the quota ran out
  std::optional<double> throttled_s;               // sum over CPUs
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> oom_kills;
};
CgroupUse read_cgroup_use(const std::filesystem::path& root = host_root());

/// The storage that holds a path.
struct Storage {
  std::string path;
  std::string filesystem;  // "ext4", "nfs4", "overlay"; empty when unknown
  std::string device;      // "nvme0n1"; empty without one
  std::string kind;        // "nvme", "ssd", "hdd", "network", "memory", or "unknown"
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> free_bytes;  // available to ordinary users
};
Storage read_storage(const std::filesystem::path& path, const std::filesystem::path& root = host_root());

/// Parses a list such as "0-3,8"; empty when it is malformed.
std::vector<int> parse_cpu_list(std::string_view list);
/// CPUs this process may be scheduled on, as a list; empty when unknown.
std::string affinity_list(const std::filesystem::path& root = host_root());

}  // namespace unidle::telemetry
