#include "unidle/telemetry/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "unidle/base/characters.h"
#include "unidle/telemetry/detail/text.h"

namespace unidle::telemetry {

namespace fs = std::filesystem;

namespace {

using detail::field;
using detail::number;

std::string process_status(const fs::path& root, const std::string& pid) {
  return try_read_file(root / "proc" / pid / "status").value_or("");
}

int cpus_in(const std::string& status) {
  return count_cpu_list(field(status, "Cpus_allowed_list").value_or("")).value_or(0);
}

int affinity(const fs::path& root) {
  if (root == "/") {
    // CPU_SETSIZE is too small for the largest machines.
    std::vector<cpu_set_t> mask(64);
    if (::sched_getaffinity(0, mask.size() * sizeof(cpu_set_t), mask.data()) == 0) {
      return CPU_COUNT_S(mask.size() * sizeof(cpu_set_t), mask.data());
    }
  }
  return cpus_in(process_status(root, "self"));
}

/// A daemon that starts the tasks of jobs, and gives them their CPUs.
bool is_of_scheduler(const std::string& name) {
  constexpr std::array<std::string_view, 6> kDaemons = {"slurmstepd", "pbs_mom",        "sge_shepherd",
                                                        "res",        "condor_starter", "systemd"};
  return std::find(kDaemons.begin(), kDaemons.end(), name) != kDaemons.end();
}

/// True when a launcher (Open MPI, MPICH and Intel MPI, MVAPICH, torchrun) started several ranks on this machine.
bool is_one_of_ranks() {
  constexpr std::array<const char*, 4> kRanksHere = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                                     "MV2_COMM_WORLD_LOCAL_SIZE", "LOCAL_WORLD_SIZE"};
  return std::any_of(kRanksHere.begin(), kRanksHere.end(), [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && number<int>(value).value_or(1) > 1;
  });
}

/// A mask is inherited, so a process above this one that may use more CPUs shows that one was set in between. A cgroup
/// limits all its processes alike: one in another cgroup shows nothing.
std::optional<int> cpus_before_mask(const fs::path& root, int affinity) {
  const auto cgroup = try_read_file(root / "proc/self/cgroup");
  std::optional<int> most;
  std::string status = process_status(root, "self");
  for (int generation = 0; generation < 64; ++generation) {
    const std::string parent = field(status, "PPid").value_or("0");
    status = process_status(root, parent);
    if (status.empty() || is_of_scheduler(field(status, "Name").value_or("")) ||
        try_read_file(root / "proc" / parent / "cgroup") != cgroup) {
      break;
    }
    most = std::max(most.value_or(affinity), cpus_in(status));
  }
  return most > affinity ? most : std::nullopt;
}

int online(const fs::path& root, const std::string& cpuinfo) {
  const auto list = try_read_file(root / "sys/devices/system/cpu/online");
  if (const auto count = count_cpu_list(trimmed(list.value_or("")))) {
    return *count;
  }
  int processors = 0;
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    processors += line.starts_with("processor") ? 1 : 0;
  }
  return std::max(processors, 1);
}

/// Keeps the smaller of two limits.
template <typename Number>
void restrict(std::optional<Number>& limit, const std::optional<Number>& other) {
  if (other && (!limit || *other < *limit)) {
    limit = other;
  }
}

/// On Arm the kernel gives numbers: of the core's designer, and of its part.
std::string arm_model(const std::string& cpuinfo) {
  struct Core {
    std::string_view designer, part, name;
  };
  constexpr std::array<Core, 14> kCores = {{{"0x41", "0xd0c", "Neoverse N1"},
                                            {"0x41", "0xd40", "Neoverse V1"},
                                            {"0x41", "0xd42", "Cortex-A78AE"},
                                            {"0x41", "0xd49", "Neoverse N2"},
                                            {"0x41", "0xd4f", "Neoverse V2"},  // NVIDIA Grace, Graviton4
                                            {"0x41", "0xd84", "Neoverse V3"},
                                            {"0x41", "0xd85", "Cortex-X925"},
                                            {"0x41", "0xd87", "Cortex-A725"},
                                            {"0x41", "0xd8e", "Neoverse N3"},
                                            {"0x46", "0x001", "Fujitsu A64FX"},
                                            {"0x48", "0xd01", "Kunpeng 920"},
                                            {"0x4e", "0x010", "NVIDIA Olympus"},
                                            {"0xc0", "0xac3", "Ampere-1"},
                                            {"0xc0", "0xac4", "Ampere-1A"}}};
  const auto designer = field(cpuinfo, "CPU implementer");
  const auto part = field(cpuinfo, "CPU part");
  if (!designer || !part) {
    return {};
  }
  const auto* core = std::find_if(kCores.begin(), kCores.end(),
                                  [&](const Core& each) { return each.designer == *designer && each.part == *part; });
  return core != kCores.end() ? std::string(core->name) : "Arm " + *designer + " " + *part;
}

std::optional<double> quota_v2(const fs::path& group) {
  std::istringstream line(try_read_file(group / "cpu.max").value_or(""));
  std::string quota;
  double period = 0;
  if (!(line >> quota >> period) || period <= 0) {
    return std::nullopt;
  }
  const auto value = number<double>(quota);  // "max" is not a number
  return value ? std::optional(*value / period) : std::nullopt;
}

std::optional<double> quota_v1(const fs::path& group) {
  const auto quota = number<double>(try_read_file(group / "cpu.cfs_quota_us").value_or(""));
  const auto period = number<double>(try_read_file(group / "cpu.cfs_period_us").value_or(""));
  return quota && period && *quota > 0 && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

std::optional<std::uint64_t> memory_limit(const fs::path& file) {
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;  // v1 writes a huge number when there is no limit
  const auto bytes = number<std::uint64_t>(try_read_file(file).value_or(""));
  return bytes && *bytes < kNoLimit ? bytes : std::nullopt;
}

}  // namespace

std::optional<int> count_cpu_list(std::string_view list) {
  int count = 0;
  while (!list.empty()) {
    const auto comma = list.find(',');
    const std::string_view part = list.substr(0, comma);
    const auto dash = part.find('-');
    const auto first = number<int>(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number<int>(part.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return std::nullopt;
    }
    count += *last - *first + 1;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return count > 0 ? std::optional(count) : std::nullopt;
}

CgroupLimits read_cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  detail::each_cgroup(root, [&](const detail::CgroupFolder& group) {
    if (group.version == 2) {
      restrict(limits.cpus, quota_v2(group.path));
      restrict(limits.memory_bytes, memory_limit(group.path / "memory.max"));
      restrict(limits.memory_bytes, memory_limit(group.path / "memory.high"));
    } else if (group.controller == "cpu") {
      restrict(limits.cpus, quota_v1(group.path));
    } else {
      restrict(limits.memory_bytes, memory_limit(group.path / "memory.limit_in_bytes"));
    }
  });
  return limits;
}

HostFacts read_host_facts(const fs::path& root) {
  HostFacts facts;
  const std::string cpuinfo = try_read_file(root / "proc/cpuinfo").value_or("");
  facts.hostname = trimmed(try_read_file(root / "proc/sys/kernel/hostname").value_or(""));
  facts.cpu_model = field(cpuinfo, "model name").value_or(arm_model(cpuinfo));
  std::istringstream flags(field(cpuinfo, "flags").value_or(field(cpuinfo, "Features").value_or("")));
  for (std::string flag; flags >> flag;) {
    facts.cpu_flags.push_back(flag);
  }
  facts.cpus_online = online(root, cpuinfo);
  const int allowed = affinity(root);
  facts.cpus_affinity = allowed > 0 ? allowed : facts.cpus_online;
  facts.cpus_before_mask = is_one_of_ranks() ? std::nullopt : cpus_before_mask(root, facts.cpus_affinity);
  const std::string memory = field(try_read_file(root / "proc/meminfo").value_or(""), "MemTotal").value_or("");
  facts.memory_bytes = number<std::uint64_t>(memory).value_or(0) * 1024;
  const CgroupLimits limits = read_cgroup_limits(root);
  facts.cpu_quota = limits.cpus;
  facts.memory_limit = limits.memory_bytes;
  return facts;
}

double HostFacts::cpus_allowed() const {
  const double cpus = std::min(cpus_online, cpus_affinity);
  return cpu_quota ? std::min(cpus, *cpu_quota) : cpus;
}

int usable_cpus(const std::filesystem::path& root) {
  return std::max(1, static_cast<int>(read_host_facts(root).cpus_allowed()));
}

bool HostFacts::cpu_amx() const { return std::find(cpu_flags.begin(), cpu_flags.end(), "amx_bf16") != cpu_flags.end(); }

bool HostFacts::cpu_bf16() const {
  // x86: names in Linux' /proc/cpuinfo; Arm: bf16 and SME.
  constexpr std::array<std::string_view, 6> kFlags = {"avx512_bf16",  "amx_bf16", "avx_ne_convert",
                                                      "avxneconvert", "bf16",     "svebf16"};
  return std::any_of(cpu_flags.begin(), cpu_flags.end(), [&](const std::string& flag) {
    return std::find(kFlags.begin(), kFlags.end(), flag) != kFlags.end();
  });
}

}  // namespace unidle::telemetry
