// Problems of a machine. Each threshold stands here with its source; docs/check.md lists the ids.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/check/check.h"
#include "unidle/language/translator.h"

namespace unidle::check {

std::vector<Problem> gpu_problems(const Machine& machine, const Translator& translator);  // gpu_problems.cpp

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
/// Docker limits /dev/shm to 64 MiB by default. Loader processes pass whole batches through it, up to twice the
/// prefetch factor per process.
constexpr double kEnoughShm_bytes = 1 * kGiB;
/// The kernel checks a quota every 100 ms; exhausting it in one period of twenty already shows as stalls that long.
constexpr double kThrottledShare = 0.05;
/// ext4 and XFS slow down and fragment when nearly full; checkpoints and caches need space too.
constexpr double kLowDiskShare = 0.05;
constexpr double kLowDisk_bytes = 5 * kGiB;
constexpr double kLowMemoryShare = 0.1;
/// One CPU launches, one pins and copies, two load: the minimum to feed a GPU. Our own estimate, not a vendor's.
constexpr double kCpusPerGpu = 4;
/// Below this, a loader that shares memory through file descriptors runs out ("Too many open files").
constexpr std::uint64_t kEnoughFiles = 1024;

int plain_number(const std::map<std::string, std::string>& environment, const std::string& name) {
  const auto found = environment.find(name);
  int value = 0;
  if (found != environment.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  }
  return value;
}

void check_cpus(const Machine& machine, const Translator& translator, Problems& problems) {
  const telemetry::HostFacts& host = machine.host;
  const int visible = std::min(host.cpus_online, host.cpus_affinity);
  const double allowed = host.cpus_allowed();
  if (host.cpu_quota && *host.cpu_quota < visible - 0.01) {
    problems.push_back({Level::kWarning, "cpu-quota", "cpu",
                        translator.say("programs see {} CPUs, the control group's quota gives time for {}", visible,
                                       format_number(*host.cpu_quota)),
                        translator.say("ask for more CPUs, or start no more than {:.0f} threads and loader processes "
                                       "together: OMP_NUM_THREADS={:.0f}",
                                       std::max(1.0, std::floor(allowed)), std::max(1.0, std::floor(allowed)))});
  }
  if (host.cpus_affinity < host.cpus_online) {
    problems.push_back(
        {Level::kInfo, "cpu-affinity", "cpu",
         translator.say("this job may run on {} of {} CPUs", host.cpus_affinity, host.cpus_online),
         translator.say("on Slurm: --cpus-per-task; in a container: --cpuset-cpus; otherwise: taskset -p")});
  }
  const std::vector<int> ours = telemetry::parse_cpu_list(machine.affinity);
  if (const auto nodes = telemetry::nodes_within(machine.numa, ours); nodes.size() > 1) {
    problems.push_back(
        {Level::kInfo, "cpu-numa", "cpu",
         translator.say("this job may run on the CPUs of {} NUMA nodes, and memory of another node is "
                        "farther away",
                        nodes.size()),
         translator.say(
             "a process a node: cpu.numa=auto for unidle train, else numactl --cpunodebind=N --localalloc")});
  }
  const auto gpus = static_cast<double>(machine.gpus.size());
  if (gpus > 0 && allowed < kCpusPerGpu * gpus) {
    problems.push_back({Level::kWarning, "cpu-few", "cpu",
                        translator.say("{} CPUs for {}: loading will be the limit", format_number(allowed),
                                       gpus == 1 ? translator.say("1 GPU") : translator.say("{} GPUs", gpus)),
                        translator.say("ask for at least {:.0f}", kCpusPerGpu * gpus)});
  }
  const auto& use = machine.cgroup;
  if (use.periods && use.throttled_periods && *use.periods > 0 &&
      static_cast<double>(*use.throttled_periods) > kThrottledShare * static_cast<double>(*use.periods)) {
    const double share = static_cast<double>(*use.throttled_periods) / static_cast<double>(*use.periods);
    problems.push_back(
        {Level::kWarning, "cpu-throttled", "cpu",
         translator.say("the control group used up its quota in {} of its periods so far", format_share(share)),
         translator.say("fewer threads, or a larger quota")});
  }
  const bool passive = machine.scaling_driver != "intel_pstate" && !machine.scaling_driver.starts_with("amd-pstate");
  if (machine.governor == "powersave" && passive) {
    problems.push_back({Level::kWarning, "cpu-governor", "cpu",
                        translator.say("the governor powersave keeps the CPUs at their lowest clock"),
                        "cpupower frequency-set -g performance"});
  }
  if (!host.cpu_bf16() && machine.gpus.empty() && machine.gpus_known) {
    problems.push_back({Level::kInfo, "cpu-no-bf16", "cpu",
                        translator.say("no vector or matrix units for bf16: training on the CPU stays in fp32"), ""});
  }
  if (machine.load_1min && *machine.load_1min > host.cpus_online) {
    problems.push_back({Level::kInfo, "cpu-busy", "cpu",
                        translator.say("a load of {} on {} CPUs: others compute here too",
                                       format_number(*machine.load_1min), host.cpus_online),
                        translator.say("measure again when the machine is quiet")});
  }
}

void check_threads(const Machine& machine, const Translator& translator, Problems& problems) {
  const double allowed = machine.host.cpus_allowed();
  const int threads = plain_number(machine.environment, "OMP_NUM_THREADS");
  if (threads > 0 && threads > std::ceil(allowed)) {
    problems.push_back({Level::kWarning, "threads-too-many", "environment",
                        translator.say("OMP_NUM_THREADS={} with {} CPUs to use: threads wait for each other", threads,
                                       format_number(allowed)),
                        fmt::format("OMP_NUM_THREADS={:.0f}", std::max(1.0, std::floor(allowed)))});
  }
  if (threads == 1 && allowed >= 2) {
    const bool cpu_only = machine.gpus.empty() && machine.gpus_known;
    problems.push_back(
        {cpu_only ? Level::kWarning : Level::kInfo, "threads-one", "environment",
         translator.say("OMP_NUM_THREADS=1: the main process computes on one of {} CPUs", format_number(allowed)),
         translator.say("torchrun sets it when nobody else does; give it the CPUs that loader processes leave")});
  }
  if (const auto found = machine.environment.find("CUDA_LAUNCH_BLOCKING");
      found != machine.environment.end() && found->second == "1") {
    problems.push_back({Level::kWarning, "launch-blocking", "environment",
                        translator.say("CUDA_LAUNCH_BLOCKING=1 makes the host wait for every kernel"),
                        translator.say("unset it; it is for debugging")});
  }
  if (machine.environment.contains("PYTORCH_NO_CUDA_MEMORY_CACHING")) {
    problems.push_back({Level::kWarning, "no-memory-caching", "environment",
                        translator.say("PYTORCH_NO_CUDA_MEMORY_CACHING makes every allocation a call to the driver"),
                        translator.say("unset it")});
  }
  if (const auto found = machine.environment.find("NVIDIA_TF32_OVERRIDE");
      found != machine.environment.end() && found->second == "0") {
    problems.push_back({Level::kWarning, "tf32-override", "environment",
                        translator.say("NVIDIA_TF32_OVERRIDE=0 turns TF32 off whatever the program says"),
                        translator.say("unset it")});
  }
}

void check_memory(const Machine& machine, const Translator& translator, Problems& problems) {
  const telemetry::HostFacts& host = machine.host;
  if (host.memory_limit && *host.memory_limit < host.memory_bytes) {
    problems.push_back({Level::kInfo, "memory-limit", "memory",
                        translator.say("the control group may use {} of {}", format_bytes(*host.memory_limit),
                                       format_bytes(host.memory_bytes)),
                        ""});
  }
  const auto& memory = machine.memory;
  if (memory.available_bytes && host.memory_bytes > 0 &&
      static_cast<double>(*memory.available_bytes) < kLowMemoryShare * static_cast<double>(host.memory_bytes)) {
    problems.push_back({Level::kWarning, "memory-low", "memory",
                        translator.say("{} of {} are available", format_bytes(*memory.available_bytes),
                                       format_bytes(host.memory_bytes)),
                        translator.say("end what else runs here, or the kernel will end your training")});
  }
  if (machine.cgroup.oom_kills && *machine.cgroup.oom_kills > 0) {
    problems.push_back({Level::kWarning, "memory-killed", "memory",
                        translator.say("the kernel has killed {} process(es) of this control group for memory",
                                       *machine.cgroup.oom_kills),
                        translator.say("fewer loader processes, smaller prefetch, or a larger limit")});
  }
  if (memory.shm_bytes && static_cast<double>(*memory.shm_bytes) < kEnoughShm_bytes) {
    problems.push_back({Level::kWarning, "shm-small", "memory",
                        translator.say("/dev/shm holds {}; loader processes pass batches through it and die with \"bus "
                                       "error\" when it is full",
                                       format_bytes(*memory.shm_bytes)),
                        translator.say("docker run --shm-size=8g, or --ipc=host")});
  } else if (memory.shm_bytes && memory.shm_free_bytes &&
             static_cast<double>(*memory.shm_free_bytes) < kLowMemoryShare * static_cast<double>(*memory.shm_bytes)) {
    problems.push_back({Level::kWarning, "shm-full", "memory",
                        translator.say("/dev/shm has {} of {} left", format_bytes(*memory.shm_free_bytes),
                                       format_bytes(*memory.shm_bytes)),
                        translator.say("ls -la /dev/shm: programs that were killed leave files there")});
  }
  if (machine.open_files_limit && *machine.open_files_limit < kEnoughFiles) {
    problems.push_back({Level::kWarning, "files-limit", "memory",
                        translator.say("at most {} open files a process", *machine.open_files_limit),
                        "ulimit -n 4096"});
  }
}

void check_storage(const Machine& machine, const Translator& translator, Problems& problems) {
  for (const telemetry::Storage& storage : machine.storage) {
    if (storage.free_bytes && storage.total_bytes && *storage.total_bytes > 0) {
      const auto free = static_cast<double>(*storage.free_bytes);
      if (free < kLowDisk_bytes || free < kLowDiskShare * static_cast<double>(*storage.total_bytes)) {
        problems.push_back(
            {Level::kWarning, "disk-low", storage.path,
             translator.say("{} of {} are free", format_bytes(*storage.free_bytes), format_bytes(*storage.total_bytes)),
             translator.say("checkpoints and caches need room")});
      }
    }
    if (storage.kind == "hdd") {
      problems.push_back({Level::kWarning, "disk-spinning", storage.path,
                          translator.say("{} is a spinning disk: about a hundred small files a second", storage.device),
                          translator.say("copy the data to an SSD or into memory, or pack small files into shards")});
    } else if (storage.kind == "network") {
      problems.push_back(
          {Level::kInfo, "disk-network", storage.path,
           translator.say("the folder lies on a network file system ({})", storage.filesystem),
           translator.say("copy the data to a local disk before training: every small file is a round trip")});
    }
  }
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::kInfo: return "info";
    case Level::kWarning: return "warning";
    case Level::kCritical: return "critical";
  }
  return "info";
}

std::vector<Problem> find_problems(const Machine& machine, Language language) {
  const Translator translator{language};
  Problems problems = gpu_problems(machine, translator);
  check_cpus(machine, translator, problems);
  check_threads(machine, translator, problems);
  check_memory(machine, translator, problems);
  check_storage(machine, translator, problems);
  std::stable_sort(problems.begin(), problems.end(),
                   [](const Problem& a, const Problem& b) { return a.level > b.level; });
  return problems;
}

int exit_code(const std::vector<Problem>& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const Problem& p) { return p.level >= Level::kWarning; }) ? 1
                                                                                                                    : 0;
}

}  // namespace unidle::check
