// The kernel's text files: /proc, /sys and cgroups. The input holds several files; a line "== PATH" begins each.
#include <cstdlib>
#include <set>

#include "fuzz.h"
#include "unidle/base/clock.h"
#include "unidle/observe/mounts.h"
#include "unidle/observe/unseen.h"
#include "unidle/telemetry/gpu.h"
#include "unidle/telemetry/host.h"
#include "unidle/telemetry/host_state.h"
#include "unidle/telemetry/process_tree.h"
#include "unidle/telemetry/process_use.h"
#include "unidle/telemetry/sampler.h"

namespace unidle::fuzz::targets {

namespace {

/// All files that are read of a machine with one command (7), its loader (8), one disk and one AMD device.
const std::set<std::string, std::less<>>& machine_files() {
  static const std::set<std::string, std::less<>> kFiles = [] {
    std::set<std::string, std::less<>> files = {"proc/self/status",
                                                "proc/self/cgroup",
                                                "proc/self/mountinfo",
                                                "proc/cpuinfo",
                                                "proc/meminfo",
                                                "proc/stat",
                                                "proc/pressure/cpu",
                                                "proc/pressure/io",
                                                "proc/pressure/memory",
                                                "sys/devices/system/cpu/online",
                                                "sys/fs/cgroup/cpu.max",
                                                "sys/fs/cgroup/memory.max",
                                                "sys/fs/cgroup/cpu.stat",
                                                "sys/fs/cgroup/memory.current",
                                                "sys/fs/cgroup/memory.events",
                                                "sys/fs/cgroup/job/cpu.max",
                                                "sys/fs/cgroup/job/cpu.stat",
                                                "sys/fs/cgroup/cpu/cpu.cfs_quota_us",
                                                "sys/fs/cgroup/cpu/cpu.cfs_period_us",
                                                "sys/fs/cgroup/cpu/cpu.stat",
                                                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                                                "sys/fs/cgroup/memory/memory.usage_in_bytes",
                                                "sys/fs/cgroup/memory/memory.oom_control",
                                                "sys/dev/block/8:1/queue/rotational"};
    for (const char* file : {"stat", "status", "cmdline", "environ", "maps", "io", "smaps_rollup"}) {
      files.insert(std::string("proc/7/") + file);
      files.insert(std::string("proc/8/") + file);
    }
    files.insert({"proc/7/task/7/children", "proc/7/task/7/schedstat", "proc/8/task/8/schedstat"});
    for (const char* file :
         {"vendor", "device", "product_name", "numa_node", "local_cpulist", "gpu_busy_percent", "mem_busy_percent",
          "mem_info_vram_total", "mem_info_vram_used", "current_link_speed", "current_link_width", "max_link_speed",
          "max_link_width", "pp_dpm_sclk", "hwmon/hwmon0/power1_average", "hwmon/hwmon0/power1_cap",
          "hwmon/hwmon0/temp1_input", "hwmon/hwmon0/freq1_input"}) {
      files.insert(std::string("sys/class/drm/card0/device/") + file);
    }
    return files;
  }();
  return kFiles;
}

/// Makes the machine's folder hold the files of the input and no others.
std::filesystem::path write_machine(std::string_view bytes) {
  static std::set<std::string> there;
  std::set<std::string> written;
  while (!bytes.empty()) {
    const auto [entry, rest] = split(bytes, "\n== ");
    const auto [name, text] = split(entry.starts_with("== ") ? entry.substr(3) : entry, "\n");
    if (machine_files().contains(name)) {
      put("machine/" + std::string(name), text);
      written.emplace(name);
    }
    bytes = rest;
  }
  for (const std::string& name : there) {
    if (!written.contains(name)) {
      std::filesystem::remove(scratch_folder() / "machine" / name);
    }
  }
  there = written;
  return scratch_folder() / "machine";
}

void run_machine(std::string_view bytes) {
  const std::filesystem::path root = write_machine(bytes);
  ::setenv("UNIDLE_HOST_ROOT", root.c_str(), 1);
  const telemetry::HostFacts facts = telemetry::read_host_facts(root);
  require(facts.cpus_allowed() > 0 && facts.cpus_online > 0 && facts.cpus_affinity > 0);
  telemetry::read_memory_state(root);
  telemetry::read_pressure("memory", root);
  telemetry::read_cgroup_use(root);
  telemetry::read_storage("/data", root);
  const auto mounts = observe::parse_mounts(try_read_file(root / "proc/self/mountinfo").value_or(""));
  observe::cover_everything(mounts);
  telemetry::parse_cpu_list(telemetry::affinity_list(root));
  telemetry::ProcessTreeReader tree(7, root);
  tree.read(true, true);
  tree.read(false, true);
  telemetry::ProcessUseReader(7, root).read();
  observe::find_unseen(7, {}, root);
  telemetry::foreign_processes({{8, 1 << 20, {}, {}}}, telemetry::process_tree(7, root), root);
  const auto source = telemetry::host_source();
  const auto processes = telemetry::process_tree_source(7);
  for (const std::int64_t t_ns : {kNsPerSecond, 3 * kNsPerSecond}) {
    may_refuse([&] { source->read(t_ns, [](const telemetry::Reading&) {}); });
    processes->read(t_ns, [](const telemetry::Reading&) {});
  }
  if (const auto amd = telemetry::amd_reader(0, root)) {
    amd->read(kNsPerSecond, true);
  }
}

}  // namespace

const Target& machine() {
  static const Target kTarget = {"machine", run_machine};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
