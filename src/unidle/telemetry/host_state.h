// How this machine is now: memory, pressure, throttling by cgroup, storage. All files are read under host_root().
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

/// Pressure stall information: seconds for which some task had to wait, since boot; absent before Linux 4.20.
struct Pressure {
  double some_s = 0;
  std::optional<double> some_10s;  // 0..1 over the last ten seconds
};
/// `resource`: cpu, io or memory.
std::optional<Pressure> read_pressure(std::string_view resource, const std::filesystem::path& root = host_root());

/// What the cgroup of this process has used and how often its quota stopped it; the strictest group up the tree.
struct CgroupUse {
  std::optional<std::uint64_t> periods;            // in which its quota was looked at
  std::optional<std::uint64_t> throttled_periods;  // in which it was used up
  std::optional<double> throttled_s;               // sum over CPUs
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> oom_kills;
};
CgroupUse read_cgroup_use(const std::filesystem::path& root = host_root());

/// The storage below a path.
struct Storage {
  std::string path;
  std::string filesystem;  // "ext4", "nfs4", "overlay"; empty when unknown
  std::string device;      // "nvme0n1"; empty for those without one
  std::string kind;        // "nvme", "ssd", "hdd", "network", "memory", or "unknown"
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> free_bytes;  // for those who are not root
};
Storage read_storage(const std::filesystem::path& path, const std::filesystem::path& root = host_root());

/// The CPUs that a list such as "0-3,8" names; empty when it is malformed.
std::vector<int> parse_cpu_list(std::string_view list);
/// CPUs that this process may be scheduled on, as a list; empty when not known.
std::string affinity_list(const std::filesystem::path& root = host_root());

}  // namespace unidle::telemetry
