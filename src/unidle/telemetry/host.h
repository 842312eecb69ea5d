// What this machine gives the job: CPUs, memory and the limits on them. All files are read under host_root().
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/files.h"

namespace unidle::telemetry {

struct HostFacts {
  std::string hostname;
  std::string cpu_model;
  std::vector<std::string> cpu_flags;
  int cpus_online = 1;
  int cpus_affinity = 1;            // CPUs that this process may be scheduled on
  std::optional<double> cpu_quota;  // CPUs' worth of time by cgroup, the least up the tree
  std::uint64_t memory_bytes = 0;
  std::optional<std::uint64_t> memory_limit;  // by cgroup, the least up the tree

  /// CPUs that this job may use: the least of online, affinity and quota.
  double cpus_allowed() const;
  /// Vector or matrix units for bf16.
  bool cpu_bf16() const;
  /// Matrix units for bf16 (Intel AMX).
  bool cpu_amx() const;
};

/// Facts that cannot be read keep their defaults; never throws for them.
HostFacts read_host_facts(const std::filesystem::path& root = host_root());

/// Threads of ours that may work side by side: whole CPUs of cpus_allowed(), at least 1. Reads the files each time.
int usable_cpus(const std::filesystem::path& root = host_root());

/// Limits of the cgroup of this process, v1 or v2, all ancestors included.
struct CgroupLimits {
  std::optional<double> cpus;
  std::optional<std::uint64_t> memory_bytes;
};
CgroupLimits read_cgroup_limits(const std::filesystem::path& root = host_root());

/// How many CPUs a list such as "0-3,8,10-11" names; nothing when it is malformed.
std::optional<int> count_cpu_list(std::string_view list);

}  // namespace unidle::telemetry
