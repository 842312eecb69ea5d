// An NVML library that replays a script, for tests: $UNIDLE_FAKE_NVML_SCRIPT names a file of lines
//
//   KEY VALUE [VALUE ...]     answers, one per call; the last one repeats
//   # comment
//
// A value is a number, a text, "error:N" (the call returns N) or "hang:PATH" (it hangs until the file exists).
// utilisation may also be "busy:PATH": the percentage of time since the last call in which the fake CUDA device was
// busy, which it records in that file (tests/fake_cuda).
// $UNIDLE_FAKE_NVML_HANG names a file: the library's constructor hangs until it exists. Keys of one device have it as a
// prefix, "0.power", or a MIG slice, "0/1.name"; without one they apply to all devices. A missing key answers "not
// supported". Keys: init, shutdown, count, handle, driver, cuda (12080), name, uuid, pci
// (domain:bus:device), capability (major.minor), memory (total:used in bytes), memory_v2, utilisation, samples
// (time:percent,...), power (mW), power_limit, power_default, energy (mJ), field.N, temperature, slowdown_temperature,
// clock, max_clock, throttle (bits), pcie (generation:width:max generation:max width), pcie_tx, pcie_rx (KiB/s), ecc,
// ecc_errors, rows (pending:failed), persistence, compute_mode, mig, mig_count, mig_handle, gpu_instance,
// multiprocessors, processes (pid:bytes,... or none), processes_v3, processes_v2 (error:13: the driver lacks that
// version), process_bytes (of an entry, 24), process_use (pid:time:percent,...), xid (device:code, each given once),
// gpm (1: supported), gpm_sample, gpm.METRIC (its value), mig_gpm.METRIC.
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "unidle/telemetry/fake_nvml/script.h"

fake::Script fake::script;

__attribute__((constructor)) static void when_loaded() {
  if (const char* path = std::getenv("UNIDLE_FAKE_NVML_HANG")) {
    fake::hang(path);
  }
}

namespace {

using namespace fake;

struct MemoryV1 {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

/// Busy share of device `index` since the last call. False at the first call and before the fake CUDA has started.
bool busy_percent(const std::string& path, std::size_t index, unsigned& percent) {
  struct Seen {
    std::int64_t busy_ns = 0, t_ns = 0;
  };
  static std::map<std::size_t, Seen> last;
  std::int64_t queued_until[2] = {0, 0};  // ns of queued work, and when the last of it ends
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(index * sizeof queued_until));
  if (!file.read(reinterpret_cast<char*>(queued_until), sizeof queued_until)) {
    return false;
  }
  const std::int64_t now_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::int64_t busy_ns = queued_until[0] - std::max<std::int64_t>(0, queued_until[1] - now_ns);
  const Seen before = std::exchange(last[index], Seen{busy_ns, now_ns});
  const std::int64_t elapsed_ns = now_ns - before.t_ns;
  if (before.t_ns == 0 || elapsed_ns <= 0) {
    return false;
  }
  percent = static_cast<unsigned>(std::clamp<std::int64_t>(100 * (busy_ns - before.busy_ns) / elapsed_ns, 0, 100));
  return true;
}

int memory(void* device, const char* key, unsigned long long& total, unsigned long long& used) {
  int result = 0;
  const std::string answer = script.next(device, key, result);
  if (result == kSuccess) {
    char* colon = nullptr;
    total = std::strtoull(answer.c_str(), &colon, 10);
    used = *colon == ':' ? std::strtoull(colon + 1, nullptr, 10) : 0;
  }
  return result;
}

/// True when the driver lacks a function that the library has.
bool unknown(void* device, const char* key) {
  int result = 0;
  script.next(device, key, result);
  return result == kFunctionNotFound;
}

/// Writes entries of `length` bytes, unless the script sets another size.
int list(void* device, unsigned* count, char* processes, std::size_t length) {
  int result = 0;
  const std::string answer = script.next(device, "processes", result);
  if (result != kSuccess) {
    return result;
  }
  std::vector<Process> all;  // all ones is the driver's "unknown"
  std::istringstream entries(answer == "none" ? "" : answer);
  for (std::string entry; std::getline(entries, entry, ',');) {
    char* colon = nullptr;
    const auto pid = static_cast<unsigned>(std::strtoul(entry.c_str(), &colon, 10));
    all.push_back({pid, *colon == ':' ? std::strtoull(colon + 1, nullptr, 10) : ~0ULL, ~0U, ~0U});
  }
  const bool fits = *count >= all.size();
  *count = static_cast<unsigned>(all.size());
  number(device, "process_bytes", &length);
  for (std::size_t i = 0; fits && i < all.size(); ++i) {
    std::memset(processes + i * length, 0, length);
    std::memcpy(processes + i * length, &all[i], std::min(length, sizeof(Process)));
  }
  return fits ? kSuccess : kInsufficientSize;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  script.load();
  int result = 0;
  script.next(nullptr, "init", result);
  return result == kNotSupported ? kSuccess : result;
}

int nvmlShutdown() {
  int result = 0;
  script.next(nullptr, "shutdown", result);
  return kSuccess;
}

const char* nvmlErrorString(int result) { return result == kNotSupported ? "Not Supported" : "scripted error"; }

int nvmlDeviceGetCount_v2(unsigned* count) { return number(nullptr, "count", count); }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(std::size_t{index} + 1);
  int result = 0;
  script.next(*device, "handle", result);
  return result == kNotSupported ? kSuccess : result;
}

int nvmlDeviceGetName(void* device, char* name, unsigned length) { return text(device, "name", name, length); }

int nvmlDeviceGetMemoryInfo(void* device, MemoryV1* out) { return memory(device, "memory", out->total, out->used); }

int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryV2* out) {
  return out->version == (sizeof(MemoryV2) | (2U << 24)) ? memory(device, "memory_v2", out->total, out->used)
                                                         : kInvalidArgument;
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
  int result = 0;
  const std::string answer = script.next(device, "utilisation", result);
  if (result == kSuccess && answer.starts_with("busy:")) {
    return busy_percent(answer.substr(5), reinterpret_cast<std::size_t>(device) - 1, *rates) ? kSuccess : kNotSupported;
  }
  *rates = static_cast<unsigned>(std::strtoul(answer.c_str(), nullptr, 0));
  return result;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* value) { return number(device, "power", value); }

int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* value) { return number(device, "power_limit", value); }

int nvmlDeviceGetTemperature(void* device, unsigned /*sensor*/, unsigned* value) {
  return number(device, "temperature", value);
}

int nvmlDeviceGetClockInfo(void* device, unsigned /*type*/, unsigned* value) { return number(device, "clock", value); }

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  int result = 0;
  const std::string answer = script.next(device, "capability", result);
  if (result == kSuccess) {
    char* dot = nullptr;
    *major = static_cast<int>(std::strtol(answer.c_str(), &dot, 10));
    *minor = *dot == '.' ? static_cast<int>(std::strtol(dot + 1, nullptr, 10)) : 0;
  }
  return result;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, char* processes) {
  return unknown(device, "processes_v3") ? kFunctionNotFound : list(device, count, processes, sizeof(Process));
}
int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, char* processes) {
  return unknown(device, "processes_v2") ? kFunctionNotFound : list(device, count, processes, sizeof(Process));
}
int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, char* processes) {
  return list(device, count, processes, offsetof(Process, gpu_instance));
}

}  // extern "C"
