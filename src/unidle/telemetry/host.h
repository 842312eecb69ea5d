// The CPUs and memory available to the job, and their limits. All files are read under host_root().
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
  int cpus_affinity = 1;  // CPUs this process may be scheduled on
  /// CPUs of the program that started this one, when a mask (taskset, numactl, mpirun) then kept this one to fewer. Not
  /// set when a cgroup or a scheduler did, or when the mask divides the CPUs among ranks.
  std::optional<int> cpus_before_mask;
  std::optional<double> cpu_quota;  // cgroup limit in CPUs; the smallest of all ancestors
  std::uint64_t memory_bytes = 0;
  std::optional<std::uint64_t> memory_limit;  // cgroup limit; the smallest of all ancestors

  /// CPUs this job may use: the minimum of online, affinity and quota.
  double cpus_allowed() const;
  /// True with vector or matrix units for bf16.
  bool cpu_bf16() const;
  /// True with matrix units for bf16 (Intel AMX).
  bool cpu_amx() const;
};

/// Never throws: facts that cannot be read keep their defaults.
HostFacts read_host_facts(const std::filesystem::path& root = host_root());

/// Number of threads that can run in parallel: whole CPUs of cpus_allowed(), at least 1. Reads the files at each call.
int usable_cpus(const std::filesystem::path& root = host_root());

/// Limits of this process's cgroup (v1 or v2) and all its ancestors.
struct CgroupLimits {
  std::optional<double> cpus;
  std::optional<std::uint64_t> memory_bytes;
};
CgroupLimits read_cgroup_limits(const std::filesystem::path& root = host_root());

/// Counts the CPUs in a list such as "0-3,8,10-11"; returns nothing when it is malformed.
std::optional<int> count_cpu_list(std::string_view list);

}  // namespace unidle::telemetry
