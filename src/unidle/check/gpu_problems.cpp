// Problems of a machine's GPUs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/check/check.h"
#include "unidle/language/translator.h"

namespace unidle::check {

std::vector<Problem> gpu_problems(const Machine& machine, const Translator& translator);

namespace {

namespace nvml = telemetry::nvml;

/// Contexts of other users often take a few hundred MiB; a twentieth of the device is more than that.
constexpr double kForeignMemoryShare = 0.05;
/// NVML reports whole percents of short windows; smaller values are noise from a desktop or a monitor.
constexpr double kForeignBusyShare = 0.05;
/// Boards differ by a few watts between their default and enforced limits.
constexpr double kLowPowerShare = 0.95;
constexpr double kHotMargin_c = 5;
/// Above this utilisation the link counts as loaded: an idle link drops to a lower generation to save power.
constexpr double kUnderLoad = 0.3;
constexpr std::uint64_t kHardReasons = nvml::kReasonHardwareSlowdown | nvml::kReasonSoftwareThermal |
                                       nvml::kReasonHardwareThermal | nvml::kReasonPowerBrake;

/// Slurm sets CUDA_VISIBLE_DEVICES to this for a job without GPUs.
constexpr std::string_view kNoGpuOfSlurm = "NoDevFiles";
constexpr const char* kAskForOne =
    "in a container: start it with --gpus all; in a job: ask for one (Slurm: --gres=gpu:1)";

/// NVML puts the result code into its reasons.
bool failed_with(const Machine& machine, int result) {
  return machine.nvml_problem.find(fmt::format("({})", result)) != std::string::npos;
}

std::string driver_fix(const Machine& machine, const Translator& translator) {
  const std::string ask_for_one = translator.word(kAskForOne);
  if (failed_with(machine, nvml::kVersionMismatch)) {
    return translator.say(
        "library and kernel module are of different drivers, as after an update: reboot, or reload the module");
  }
  if (failed_with(machine, nvml::kDriverNotLoaded) && machine.nvidia_module && !machine.nvidia_files) {
    return translator.say("{}; elsewhere nvidia-modprobe -c 0 -u makes the device files", ask_for_one);
  }
  if (failed_with(machine, nvml::kDriverNotLoaded)) {
    return translator.say("the kernel module is not loaded: modprobe nvidia; in a container: start it with --gpus all");
  }
  if (failed_with(machine, nvml::kNoPermission)) {
    return translator.say("ls -l /dev/nvidia* shows who may use the devices; {}", ask_for_one);
  }
  if (failed_with(machine, nvml::kUnknown) && machine.nvidia_module) {
    return translator.say(
        "nvidia-smi fails in the same way then; a container that worked may have lost its devices: start it anew");
  }
  return translator.say("nvidia-smi shows whether the driver works at all; dmesg says why not");
}

std::string no_files(const Machine& machine, const Translator& translator) {
  return machine.nvidia_module && !machine.nvidia_files
             ? translator.say(": the kernel has the driver, and there is no /dev/nvidiactl")
             : "";
}

/// With the call that it hangs in.
std::string no_answer(const Machine& machine, const Translator& translator) {
  const std::size_t call = machine.nvml_problem.find(" (");
  return translator.say("the driver does not answer{}",
                        call == std::string::npos ? std::string() : machine.nvml_problem.substr(call));
}

void check_presence(const Machine& machine, const Translator& translator, Problems& problems) {
  if (machine.nvml_failure == telemetry::NvmlFailure::kNoAnswer) {
    problems.push_back(
        {Level::kCritical, "gpu-driver-hangs", "gpu", no_answer(machine, translator),
         translator.say("nvidia-smi hangs as well then; dmesg says why (Xid): reset the device, or reboot")});
    return;
  }
  if (machine.nvml_failure == telemetry::NvmlFailure::kUnusable) {
    problems.push_back({Level::kCritical, "gpu-driver-broken", "gpu",
                        translator.say("an NVIDIA driver is installed and does not work: {}{}", machine.nvml_problem,
                                       no_files(machine, translator)),
                        driver_fix(machine, translator)});
    return;
  }
  if (machine.nvml_failure == telemetry::NvmlFailure::kNotInstalled && !machine.nvidia_pci.empty()) {
    problems.push_back(
        {Level::kCritical, "gpu-driver-missing", "gpu",
         translator.say("{} NVIDIA GPU(s) on the PCI bus ({}), and no driver library is found",
                        machine.nvidia_pci.size(), fmt::join(machine.nvidia_pci, ", ")),
         translator.say("install the driver (apt install nvidia-driver); in a container: start it with --gpus all")});
    return;
  }
  if (machine.gpus.empty() && machine.nvml_failure == telemetry::NvmlFailure::kNone) {
    problems.push_back({Level::kWarning, "gpu-none-visible", "gpu",
                        translator.say("the NVIDIA driver works and shows no device{}", no_files(machine, translator)),
                        translator.say("a scheduler or a container may hide them: {}", translator.word(kAskForOne))});
  } else if (machine.gpus.empty()) {
    problems.push_back({Level::kInfo, "gpu-none", "gpu",
                        translator.say("no NVIDIA driver and no AMD device is found: the CPU is what trains here"),
                        ""});
  }
  for (const auto& [name, value] : machine.environment) {
    if (!machine.gpus.empty() && telemetry::shows_some_gpus(name) && telemetry::hides_every_gpu(value)) {
      problems.push_back({Level::kWarning, "gpu-hidden", "environment",
                          translator.say("{}=\"{}\" hides every GPU from the program", name, value),
                          value == kNoGpuOfSlurm ? translator.word(kAskForOne) : translator.say("unset {}", name)});
    }
  }
}

void check_health(const GpuState& gpu, const std::string& name, const Translator& translator, Problems& problems) {
  if (gpu.reading.ecc_uncorrected.value_or(0) > 0) {
    problems.push_back(
        {Level::kCritical, "gpu-ecc-errors", name,
         translator.say("{:.0f} uncorrectable memory errors since the driver was loaded", *gpu.reading.ecc_uncorrected),
         translator.say("results may be wrong: reset the device, and have it replaced when they return")});
  }
  if (gpu.rows_failed.value_or(false)) {
    problems.push_back({Level::kCritical, "gpu-memory-worn", name,
                        translator.say("a row of its memory could not be remapped"),
                        translator.say("have the device replaced")});
  } else if (gpu.rows_pending.value_or(false)) {
    problems.push_back({Level::kWarning, "gpu-reset-needed", name,
                        translator.say("rows of its memory wait to be remapped"),
                        translator.say("reset the device: nvidia-smi --gpu-reset, or reboot")});
  }
  if (gpu.compute_mode == 2U) {
    problems.push_back({Level::kCritical, "gpu-prohibited", name, translator.say("its compute mode forbids computing"),
                        "nvidia-smi --compute-mode=0"});
  }
  if (gpu.persistence == false && gpu.facts.kind == "cuda") {
    problems.push_back({Level::kInfo, "gpu-persistence", name,
                        translator.say("persistence mode is off: the first use of the device takes seconds longer"),
                        "nvidia-smi -pm 1"});
  }
}

std::string names_of(std::uint64_t reasons, const Translator& translator) {
  std::vector<std::string> names;
  for (const std::string_view name : telemetry::throttle_names(reasons)) {
    names.push_back(translator.word(name));
  }
  return fmt::format("{}", fmt::join(names, translator.word(", ")));
}

void check_clocks(const GpuState& gpu, const std::string& name, const Translator& translator, Problems& problems) {
  const auto reasons = static_cast<std::uint64_t>(gpu.reading.throttle_reasons.value_or(0));
  if ((reasons & kHardReasons) != 0) {
    problems.push_back({Level::kWarning, "gpu-throttled", name,
                        translator.say("its clocks are held down: {}", names_of(reasons, translator)),
                        translator.say("look at fans, air flow and power cables")});
  } else if ((reasons & nvml::kReasonPowerCap) != 0) {
    problems.push_back({Level::kInfo, "gpu-at-power-limit", name,
                        translator.say("its clocks are held down by the power limit"),
                        translator.say("normal under full load")});
  }
  const auto& power = gpu.facts.power_limit_w;
  if (power && gpu.power_default_limit_w && *power < kLowPowerShare * *gpu.power_default_limit_w) {
    problems.push_back(
        {Level::kWarning, "gpu-power-limit", name,
         translator.say("its power limit is {:.0f} W, by default it has {:.0f} W", *power, *gpu.power_default_limit_w),
         fmt::format("nvidia-smi -i {} -pl {:.0f}", gpu.facts.index, *gpu.power_default_limit_w)});
  }
  if (gpu.reading.temperature_c && gpu.slowdown_temperature_c &&
      *gpu.reading.temperature_c > *gpu.slowdown_temperature_c - kHotMargin_c) {
    problems.push_back(
        {Level::kWarning, "gpu-hot", name,
         translator.say("{:.0f} C; at {:.0f} C it slows down", *gpu.reading.temperature_c, *gpu.slowdown_temperature_c),
         translator.say("look at fans and air flow")});
  }
}

void check_link(const GpuState& gpu, const std::string& name, const Translator& translator, Problems& problems) {
  const telemetry::Pcie& link = gpu.facts.pcie;
  if (link.width && link.max_width && *link.width < *link.max_width) {
    problems.push_back(
        {Level::kWarning, "gpu-link-width", name,
         translator.say("PCIe runs on {} of {} lanes", *link.width, *link.max_width),
         translator.say("reseat the card; look for a slot with all lanes, or a riser that is the limit")});
  }
  const bool loaded = gpu.reading.utilisation.value_or(0) > kUnderLoad;
  if (link.generation && link.max_generation && *link.generation < *link.max_generation) {
    problems.push_back({loaded ? Level::kWarning : Level::kInfo, "gpu-link-generation", name,
                        translator.say("PCIe runs at generation {} of {}", *link.generation, *link.max_generation),
                        loaded ? translator.say("the BIOS may limit the slot; a riser may too")
                               : translator.say("an idle link rests to save power: look again under load")});
  }
}

void check_sharing(const GpuState& gpu, const std::string& name, const Translator& translator, Problems& problems) {
  if (!gpu.processes || gpu.processes->empty()) {
    return;
  }
  std::uint64_t bytes = 0;
  double busy = 0;
  std::vector<std::int64_t> pids;
  for (const telemetry::GpuProcess& process : *gpu.processes) {
    bytes += process.used_bytes.value_or(0);
    busy += process.share.value_or(0);
    pids.push_back(process.pid);
  }
  const double total = static_cast<double>(gpu.facts.memory_bytes.value_or(0));
  // Work in another MIG slice takes nothing from ours.
  const bool matters =
      !gpu.mig_on.value_or(false) &&
      (busy > kForeignBusyShare || (total > 0 && static_cast<double>(bytes) > kForeignMemoryShare * total));
  problems.push_back({matters ? Level::kWarning : Level::kInfo, "gpu-in-use", name,
                      translator.say("{} process(es) compute on it already, with {} of its memory (pid {})",
                                     pids.size(), format_bytes(bytes), fmt::join(pids, ", ")),
                      translator.say("wait for them, or choose another device with CUDA_VISIBLE_DEVICES")});
}

void check_place(const Machine& machine, const GpuState& gpu, const std::string& name, const Translator& translator,
                 Problems& problems) {
  if (gpu.mig_on.value_or(false)) {
    const bool none = gpu.facts.mig.empty();
    std::vector<std::string> slices;
    for (const telemetry::MigDevice& slice : gpu.facts.mig) {
      slices.push_back(slice.name);
    }
    problems.push_back({none ? Level::kWarning : Level::kInfo, "gpu-mig", name,
                        none ? translator.say("MIG mode is on and there is no slice: no program can compute on it")
                             : translator.say("MIG mode is on: a program gets one slice ({})", fmt::join(slices, ", ")),
                        none ? translator.say("nvidia-smi mig -cgi ... -C, or turn MIG off") : ""});
  }
  if (!gpu.facts.local_cpus || machine.numa.size() < 2) {
    return;
  }
  const std::vector<int> near = telemetry::parse_cpu_list(*gpu.facts.local_cpus);
  const std::vector<int> ours = telemetry::parse_cpu_list(machine.affinity);
  const bool meets = std::any_of(ours.begin(), ours.end(),
                                 [&](int cpu) { return std::find(near.begin(), near.end(), cpu) != near.end(); });
  if (!near.empty() && !ours.empty() && !meets) {
    problems.push_back({Level::kWarning, "gpu-far", name,
                        translator.say("this job may run on CPUs {}, the device is next to CPUs {}", machine.affinity,
                                       *gpu.facts.local_cpus),
                        translator.say("taskset -c {} CMD, or numactl --cpunodebind", *gpu.facts.local_cpus)});
  }
}

}  // namespace

std::vector<Problem> gpu_problems(const Machine& machine, const Translator& translator) {
  Problems problems;
  check_presence(machine, translator, problems);
  for (const GpuState& gpu : machine.gpus) {
    const std::string name = fmt::format("gpu{}", gpu.facts.index);
    if (gpu.facts.hidden) {
      continue;  // belongs to another user
    }
    if (!gpu.answers) {
      problems.push_back({Level::kCritical, "gpu-lost", name,
                          translator.say("the driver counts it and it does not answer"),
                          translator.say("dmesg | grep -i xid says why; reset or reboot")});
      continue;
    }
    check_health(gpu, name, translator, problems);
    check_clocks(gpu, name, translator, problems);
    check_link(gpu, name, translator, problems);
    check_sharing(gpu, name, translator, problems);
    check_place(machine, gpu, name, translator, problems);
  }
  return problems;
}

}  // namespace unidle::check
