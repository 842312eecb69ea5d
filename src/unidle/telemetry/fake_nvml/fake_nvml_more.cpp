// The rest of the fake library: states, samples, MIG, events and GPM.
#include <cstring>

#include "unidle/telemetry/fake_nvml/script.h"
#include "unidle/telemetry/nvml_abi.h"

using namespace fake;
namespace nvml = unidle::telemetry::nvml;

namespace {

/// A GPM buffer: its device, and how many samples came before.
struct GpmSample {
  void* device = nullptr;
  bool slice = false;
};

}  // namespace

extern "C" {

int nvmlSystemGetDriverVersion(char* version, unsigned length) { return text(nullptr, "driver", version, length); }
int nvmlSystemGetCudaDriverVersion_v2(int* version) { return number(nullptr, "cuda", version); }
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) { return text(device, "uuid", uuid, length); }

int nvmlDeviceGetPciInfo_v3(void* device, nvml::PciInfo* info) {
  int result = 0;
  const auto numbers = tuples(script.next(device, "pci", result));
  if (result == kSuccess && numbers.at(0).size() == 3) {
    info->domain = static_cast<unsigned>(numbers[0][0]);
    info->bus = static_cast<unsigned>(numbers[0][1]);
    info->device = static_cast<unsigned>(numbers[0][2]);
  }
  return result;
}

int nvmlDeviceGetSamples(void* device, unsigned type, unsigned long long seen, unsigned* value_type, unsigned* count,
                         nvml::Sample* samples) {
  if (type != nvml::kUtilisationSamples) {
    return kInvalidArgument;
  }
  *value_type = 1;
  if (samples == nullptr) {
    *count = 128;  // like the driver: the size of its buffer, not the number of samples
    const std::lock_guard lock(script.mutex);
    return script.answers.contains("samples") || script.answers.contains(prefix_of(device) + "samples") ? kSuccess
                                                                                                        : kNotSupported;
  }
  int result = 0;
  unsigned given = 0;
  for (const auto& pair : tuples(script.next(device, "samples", result))) {
    if (pair.size() == 2 && pair[0] > seen && given < *count) {
      samples[given].t_us = pair[0];
      samples[given++].value.number = static_cast<unsigned>(pair[1]);
    }
  }
  *count = given;
  return result == kSuccess && given == 0 ? kNotFound : result;
}

int nvmlDeviceGetPowerManagementDefaultLimit(void* device, unsigned* value) {
  return number(device, "power_default", value);
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* value) {
  return number(device, "energy", value);
}

int nvmlDeviceGetFieldValues(void* device, int count, nvml::FieldValue* fields) {
  for (int i = 0; i < count; ++i) {
    fields[i].type = 1;
    fields[i].result = number(device, "field." + std::to_string(fields[i].field), &fields[i].value.number);
  }
  return kSuccess;
}

int nvmlDeviceGetTemperatureThreshold(void* device, unsigned /*kind*/, unsigned* value) {
  return number(device, "slowdown_temperature", value);
}
int nvmlDeviceGetMaxClockInfo(void* device, unsigned /*kind*/, unsigned* value) {
  return number(device, "max_clock", value);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* value) {
  return number(device, "throttle", value);
}
int nvmlDeviceGetCurrPcieLinkGeneration(void* device, unsigned* value) { return part(device, "pcie", 0, value); }
int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* value) { return part(device, "pcie", 1, value); }
int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* value) { return part(device, "pcie", 2, value); }
int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* value) { return part(device, "pcie", 3, value); }
int nvmlDeviceGetPcieThroughput(void* device, unsigned counter, unsigned* value) {
  return number(device, counter == nvml::kPcieTx ? "pcie_tx" : "pcie_rx", value);
}

int nvmlDeviceGetEccMode(void* device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return number(device, "ecc", current);
}
int nvmlDeviceGetTotalEccErrors(void* device, unsigned kind, unsigned counter, unsigned long long* value) {
  return kind == 1 && counter == 0 ? number(device, "ecc_errors", value) : kInvalidArgument;
}
int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  int result = 0;
  const auto all = tuples(script.next(device, "rows", result));
  *corrected = *uncorrected = 0;
  *pending = *failed = 0;
  if (result == kSuccess && all.at(0).size() == 2) {
    *pending = static_cast<unsigned>(all[0][0]);
    *failed = static_cast<unsigned>(all[0][1]);
  }
  return result;
}
int nvmlDeviceGetPersistenceMode(void* device, unsigned* value) { return number(device, "persistence", value); }
int nvmlDeviceGetComputeMode(void* device, unsigned* value) { return number(device, "compute_mode", value); }

int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return number(device, "mig", current);
}
int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* value) { return number(device, "mig_count", value); }
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** slice) {
  const auto gpu = reinterpret_cast<std::size_t>(device) - 1;
  void* wanted = reinterpret_cast<void*>(kSlice + gpu * 64 + index);
  int result = 0;
  script.next(wanted, "name", result);
  *slice = result == kSuccess ? wanted : nullptr;
  return result == kSuccess ? kSuccess : kNotFound;
}
int nvmlDeviceGetGpuInstanceId(void* device, unsigned* value) { return number(device, "gpu_instance", value); }
int nvmlDeviceGetAttributes_v2(void* device, nvml::Attributes* attributes) {
  return number(device, "multiprocessors", &attributes->multiprocessors);
}

int nvmlDeviceGetProcessUtilization(void* device, nvml::ProcessUtilization* places, unsigned* count,
                                    unsigned long long seen) {
  if (places == nullptr) {
    *count = 100;
    const std::lock_guard lock(script.mutex);
    return script.answers.contains("process_use") ? kInsufficientSize : kNotSupported;
  }
  int result = 0;
  unsigned given = 0;
  for (const auto& triple : tuples(script.next(device, "process_use", result))) {
    if (triple.size() == 3 && triple[1] > seen && given < *count) {
      places[given] = {};
      places[given].pid = static_cast<unsigned>(triple[0]);
      places[given].t_us = triple[1];
      places[given++].sm = static_cast<unsigned>(triple[2]);
    }
  }
  *count = given;
  return result == kSuccess && given == 0 ? kNotFound : result;
}

int nvmlEventSetCreate(void** set) {
  *set = &script;
  return kSuccess;
}
int nvmlEventSetFree(void* /*set*/) { return kSuccess; }
int nvmlDeviceRegisterEvents(void* /*device*/, unsigned long long /*types*/, void* /*set*/) { return kSuccess; }
int nvmlEventSetWait_v2(void* /*set*/, nvml::EventData* event, unsigned /*timeout_ms*/) {
  if (script.spent("xid")) {
    return kTimeout;
  }
  int result = 0;
  const auto pair = tuples(script.next(nullptr, "xid", result));
  if (result != kSuccess || pair.empty() || pair[0].size() != 2) {
    return kTimeout;  // "none": nothing now, perhaps later
  }
  event->device = reinterpret_cast<void*>(pair[0][0] + 1);
  event->type = nvml::kEventXid;
  event->data = pair[0][1];
  return kSuccess;
}

int nvmlGpmQueryDeviceSupport(void* device, nvml::GpmSupport* support) {
  return support->version == 1 ? number(device, "gpm", &support->supported) : kInvalidArgument;
}
int nvmlGpmSampleAlloc(void** sample) {
  *sample = new GpmSample;
  return kSuccess;
}
int nvmlGpmSampleFree(void* sample) {
  delete static_cast<GpmSample*>(sample);
  return kSuccess;
}
int nvmlGpmSampleGet(void* device, void* sample) {
  *static_cast<GpmSample*>(sample) = {device, false};
  int result = 0;
  script.next(device, "gpm_sample", result);
  return result == kNotSupported ? kSuccess : result;
}
int nvmlGpmMigSampleGet(void* device, unsigned /*instance*/, void* sample) {
  *static_cast<GpmSample*>(sample) = {device, true};
  return kSuccess;
}
int nvmlGpmMetricsGet(nvml::GpmMetrics* request) {
  const auto* first = static_cast<GpmSample*>(request->first);
  const auto* second = static_cast<GpmSample*>(request->second);
  if (request->version != 1 || first == second || first->device == nullptr || first->device != second->device) {
    return kInvalidArgument;
  }
  for (unsigned i = 0; i < request->count; ++i) {
    nvml::GpmMetric& metric = request->metrics[i];
    const std::string key = (first->slice ? "mig_gpm." : "gpm.") + std::to_string(metric.metric);
    const std::string answer = script.next(first->device, key, metric.result);
    metric.value = std::atof(answer.c_str());
  }
  return kSuccess;
}

}  // extern "C"
