#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/split.h"
#include "unidle/check/check.h"
#include "unidle/telemetry/driver_call.h"

namespace unidle::check {

namespace fs = std::filesystem;

namespace {

std::string first_line_of(const fs::path& file) { return std::string(first_line(try_read_file(file).value_or(""))); }

bool is_there(const fs::path& file) {
  std::error_code unreadable;
  return fs::exists(file, unreadable);
}

/// Counts physical cores: threads of one core list the same siblings.
std::optional<int> count_cores(const fs::path& root, int cpus) {
  std::set<std::string> cores;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    const std::string siblings = first_line_of(root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) /
                                               "topology/thread_siblings_list");
    if (siblings.empty()) {
      return std::nullopt;
    }
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

std::vector<std::string> find_nvidia_devices(const fs::path& root) {
  std::vector<std::string> found;
  std::error_code failure;
  for (fs::directory_iterator entry(root / "sys/bus/pci/devices", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    // PCI class 03: display controllers, which include compute cards.
    if (first_line_of(entry->path() / "vendor") == "0x10de" &&
        first_line_of(entry->path() / "class").starts_with("0x03")) {
      found.push_back(entry->path().filename().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void add_nvml_states(telemetry::Nvml& nvml, std::vector<GpuState>& gpus) {
  for (GpuState& gpu : gpus) {
    if (gpu.facts.kind != "cuda") {
      continue;
    }
    const unsigned index = gpu.facts.index;
    gpu.power_default_limit_w = nvml.power_default_limit_w(index).value;
    gpu.slowdown_temperature_c = nvml.slowdown_temperature_c(index).value;
    gpu.ecc_on = nvml.ecc_on(index).value;
    gpu.rows_pending = nvml.rows_pending(index).value;
    gpu.rows_failed = nvml.rows_failed(index).value;
    gpu.persistence = nvml.persistence_mode(index).value;
    gpu.mig_on = nvml.mig_on(index).value;
    gpu.compute_mode = nvml.compute_mode(index).value;
    gpu.answers = nvml.name(index).value || nvml.memory(index).value;
  }
}

/// The devices, read on a thread that can be abandoned when the driver hangs.
struct Gpus {
  bool known = true;
  telemetry::NvmlFailure nvml_failure = telemetry::NvmlFailure::kNone;
  std::string problem;
  std::optional<std::string> driver_version, cuda_version;
  std::vector<GpuState> states;
};

Gpus ask_gpus(const fs::path& root) {
  telemetry::GpuInventory found = telemetry::find_gpus(root);
  Gpus gpus{found.known, found.nvml_failure, found.problem, found.driver_version, found.cuda_version, {}};
  for (const auto& reader : found.readers) {
    std::map<std::string, telemetry::GpuReading> readings;
    for (const auto& subject : reader->read(system_clock().now_ns(), true)) {
      readings[subject.name] = subject.reading;
    }
    for (telemetry::GpuFacts& facts : reader->facts()) {
      telemetry::add_locality(facts, root);
      GpuState& gpu = gpus.states.emplace_back();
      gpu.reading = readings["gpu" + std::to_string(facts.index)];
      gpu.processes = reader->processes(facts.index);
      gpu.facts = std::move(facts);
    }
  }
  if (found.nvml_failure == telemetry::NvmlFailure::kNone) {
    std::string ignored;
    if (const auto nvml = telemetry::Nvml::load(ignored)) {
      add_nvml_states(*nvml, gpus.states);
    }
  }
  return gpus;
}

void inspect_gpus(Machine& machine, const fs::path& root) {
  std::string problem;
  Gpus gpus = telemetry::ask_driver<Gpus>([root] { return ask_gpus(root); }, problem)
                  .value_or(Gpus{false, telemetry::NvmlFailure::kNoAnswer, problem, {}, {}, {}});
  machine.gpus_known = gpus.known;
  machine.nvml_failure = gpus.nvml_failure;
  machine.nvml_problem = gpus.problem;
  machine.driver_version = gpus.driver_version;
  machine.cuda_version = gpus.cuda_version;
  machine.nvidia_pci = find_nvidia_devices(root);
  machine.nvidia_module = is_there(root / "proc/driver/nvidia/version");
  machine.nvidia_files = is_there(root / "dev/nvidiactl") || is_there(root / "dev/dxg");
  machine.gpus = std::move(gpus.states);
}

}  // namespace

const std::vector<std::string_view>& watched_variables() {
  static const std::vector<std::string_view> kNames = {"OMP_NUM_THREADS",
                                                       "MKL_NUM_THREADS",
                                                       "OPENBLAS_NUM_THREADS",
                                                       "OMP_WAIT_POLICY",
                                                       "CUDA_VISIBLE_DEVICES",
                                                       "HIP_VISIBLE_DEVICES",
                                                       "ROCR_VISIBLE_DEVICES",
                                                       "CUDA_LAUNCH_BLOCKING",
                                                       "NVIDIA_TF32_OVERRIDE",
                                                       "TORCH_CUDNN_V8_API_DISABLED",
                                                       "PYTORCH_NO_CUDA_MEMORY_CACHING",
                                                       "PYTORCH_CUDA_ALLOC_CONF",
                                                       "SLURM_CPUS_PER_TASK",
                                                       "SLURM_JOB_ID"};
  return kNames;
}

Machine inspect(const fs::path& folder, const fs::path& root) {
  Machine machine;
  struct utsname system {};
  if (::uname(&system) == 0) {
    machine.kernel = std::string(system.sysname) + " " + system.release;
  }
  machine.host = telemetry::read_host_facts(root);
  machine.cores = count_cores(root, machine.host.cpus_online);
  machine.numa = telemetry::numa_nodes(root);
  machine.affinity = telemetry::affinity_list(root);
  machine.governor = first_line_of(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  machine.scaling_driver = first_line_of(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver");
  const std::string load = first_line_of(root / "proc/loadavg");
  double value = 0;
  if (std::from_chars(load.data(), load.data() + load.size(), value).ec == std::errc()) {
    machine.load_1min = value;
  }
  machine.cpu_pressure = telemetry::read_pressure("cpu", root);
  machine.memory = telemetry::read_memory_state(root);
  machine.cgroup = telemetry::read_cgroup_use(root);
  machine.storage.push_back(telemetry::read_storage(folder, root));
  std::error_code failure;  // ignored: $TMPDIR may be invalid
  if (const fs::path folder_of_all = fs::temp_directory_path(failure); !failure) {
    const telemetry::Storage temporary = telemetry::read_storage(folder_of_all, root);
    if (temporary.device != machine.storage[0].device || temporary.filesystem != machine.storage[0].filesystem) {
      machine.storage.push_back(temporary);
    }
  }
  struct rlimit files {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
    machine.open_files_limit = files.rlim_cur;
  }
  for (const std::string_view name : watched_variables()) {
    if (const char* set = std::getenv(std::string(name).c_str())) {
      machine.environment[std::string(name)] = set;
    }
  }
  inspect_gpus(machine, root);
  return machine;
}

}  // namespace unidle::check
