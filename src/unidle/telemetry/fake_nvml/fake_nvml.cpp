// An NVML library that replays a script, for tests: $UNIDLE_FAKE_NVML_SCRIPT names a file of lines
//
//   KEY VALUE [VALUE ...]     answers, one a call; the last one stays
//   # comment
//
// A value is a number, a text, or "error:N": the call then returns N. Keys with a device have it as a prefix,
// "0.power"; without one they hold for all devices. Keys: init, count, handle, name, memory (total:used in bytes),
// memory_v2 (the same; not supported when absent), utilisation, power (mW), power_limit (mW), temperature, clock,
// capability (major.minor), processes (pid:bytes,pid:bytes or none). A key that is absent answers "not supported".
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;

struct Script {
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> answers;
  std::map<std::string, std::size_t> calls;

  void load() {
    answers.clear();
    calls.clear();
    const char* path = std::getenv("UNIDLE_FAKE_NVML_SCRIPT");
    std::ifstream file(path != nullptr ? path : "");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string key;
      if (words >> key && key[0] != '#') {
        for (std::string word; words >> word;) {
          answers[key].push_back(word);
        }
      }
    }
  }

  /// The next answer to `key`, first as the device's own; the return code in `result`.
  std::string next(const void* device, const std::string& key, int& result) {
    const std::lock_guard lock(mutex);
    const std::string own = std::to_string(reinterpret_cast<std::size_t>(device) - 1) + "." + key;
    const std::string& used = device != nullptr && answers.contains(own) ? own : key;
    const auto found = answers.find(used);
    if (found == answers.end() || found->second.empty()) {
      result = kNotSupported;
      return {};
    }
    const std::size_t call = std::min(calls[used]++, found->second.size() - 1);
    const std::string& answer = found->second[call];
    result = answer.starts_with("error:") ? std::atoi(answer.c_str() + 6) : kSuccess;
    return answer;
  }
};

Script script;

int number(void* device, const char* key, unsigned* value) {
  int result = 0;
  const std::string answer = script.next(device, key, result);
  if (result == kSuccess) {
    *value = static_cast<unsigned>(std::strtoul(answer.c_str(), nullptr, 10));
  }
  return result;
}

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

}  // namespace

extern "C" {

int nvmlInit_v2() {
  script.load();
  int result = 0;
  script.next(nullptr, "init", result);
  return result == kNotSupported ? kSuccess : result;
}

int nvmlShutdown() { return kSuccess; }

const char* nvmlErrorString(int result) { return result == kNotSupported ? "Not Supported" : "scripted error"; }

int nvmlDeviceGetCount_v2(unsigned* count) { return number(nullptr, "count", count); }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(std::size_t{index} + 1);
  int result = 0;
  script.next(*device, "handle", result);
  return result == kNotSupported ? kSuccess : result;
}

int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  int result = 0;
  const std::string answer = script.next(device, "name", result);
  if (result == kSuccess) {
    std::strncpy(name, answer.c_str(), length);
  }
  return result;
}

int nvmlDeviceGetMemoryInfo(void* device, MemoryV1* out) { return memory(device, "memory", out->total, out->used); }

int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryV2* out) {
  return out->version == (sizeof(MemoryV2) | (2U << 24)) ? memory(device, "memory_v2", out->total, out->used)
                                                         : kInvalidArgument;
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) { return number(device, "utilisation", rates); }

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

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* processes) {
  int result = 0;
  const std::string answer = script.next(device, "processes", result);
  if (result != kSuccess) {
    return result;
  }
  std::vector<Process> all;
  std::istringstream entries(answer == "none" ? "" : answer);
  for (std::string entry; std::getline(entries, entry, ',');) {
    char* colon = nullptr;
    const auto pid = static_cast<unsigned>(std::strtoul(entry.c_str(), &colon, 10));
    all.push_back({pid, *colon == ':' ? std::strtoull(colon + 1, nullptr, 10) : ~0ULL, ~0U, ~0U});
  }
  const bool fits = *count >= all.size();
  *count = static_cast<unsigned>(all.size());
  if (fits) {
    std::copy(all.begin(), all.end(), processes);
  }
  return fits ? kSuccess : kInsufficientSize;
}

}  // extern "C"
