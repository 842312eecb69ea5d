// What this machine offers a training run, and its problems.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/files.h"
#include "unidle/language/language.h"
#include "unidle/telemetry/gpu.h"
#include "unidle/telemetry/host.h"
#include "unidle/telemetry/host_state.h"
#include "unidle/telemetry/numa.h"

namespace unidle::check {

enum class Level { kInfo, kWarning, kCritical };
std::string_view to_string(Level level);

/// A problem that costs speed or stops training, and how to fix it.
struct Problem {
  Level level = Level::kInfo;
  std::string id;       // stable, e.g. "cpu-quota"
  std::string subject;  // "gpu0", "cpu", "memory", ...
  std::string message;  // what was measured
  std::string fix;      // may be empty
};
using Problems = std::vector<Problem>;

/// One GPU and its current state.
struct GpuState {
  telemetry::GpuFacts facts;
  telemetry::GpuReading reading;
  std::optional<std::vector<telemetry::GpuProcess>> processes;
  // NVIDIA only; absent when the driver does not report it.
  std::optional<double> power_default_limit_w;
  std::optional<double> slowdown_temperature_c;
  std::optional<bool> ecc_on, rows_pending, rows_failed, persistence, mig_on;
  std::optional<unsigned> compute_mode;
  bool answers = true;
};

/// All facts that are inspected. The rules read nothing else.
struct Machine {
  std::string kernel;
  telemetry::HostFacts host;
  std::optional<int> cores;               // physical
  std::vector<telemetry::NumaNode> numa;  // empty when unknown
  std::string affinity;                   // a CPU list
  std::string governor, scaling_driver;
  std::optional<double> load_1min;
  std::optional<telemetry::Pressure> cpu_pressure;
  telemetry::MemoryState memory;
  telemetry::CgroupUse cgroup;
  /// Of the working folder, and of the temporary folder if it is on other storage.
  std::vector<telemetry::Storage> storage;
  std::optional<std::uint64_t> open_files_limit;
  std::map<std::string, std::string> environment;  // the watched_variables() that are set

  bool gpus_known = true;
  telemetry::NvmlFailure nvml_failure = telemetry::NvmlFailure::kNone;
  std::string nvml_problem;
  std::optional<std::string> driver_version, cuda_version;
  std::vector<std::string> nvidia_pci;  // bus ids of NVIDIA display or compute controllers, driver or not
  bool nvidia_module = false;           // the kernel has loaded the driver's module
  bool nvidia_files = false;            // /dev/nvidiactl, or its equivalent in WSL
  std::vector<GpuState> gpus;
};

/// Environment variables that change how training runs.
const std::vector<std::string_view>& watched_variables();

/// Inspects this machine. Never throws: what cannot be read is absent.
Machine inspect(const std::filesystem::path& folder = ".", const std::filesystem::path& root = host_root());

/// Returns the problems, worst first. Thresholds and their sources are in problems.cpp and docs/check.md.
std::vector<Problem> find_problems(const Machine& machine, Language language = Language::kEnglish);

/// Returns 1 when a problem is a warning or worse, otherwise 0.
int exit_code(const std::vector<Problem>& problems);

/// `speed`: the results of speed.h; null when speed was not measured.
std::string to_text(const Machine& machine, const std::vector<Problem>& problems, const nlohmann::json& speed,
                    int width, Language language = Language::kEnglish);
nlohmann::json to_json(const Machine& machine, const std::vector<Problem>& problems, const nlohmann::json& speed);

}  // namespace unidle::check
