#include "unidle/telemetry/detail/nvml_api.h"

namespace unidle::telemetry {

const char* Nvml::Api::bind() {
  find(init, "nvmlInit_v2");
  find(count, "nvmlDeviceGetCount_v2");
  find(handle_by_index, "nvmlDeviceGetHandleByIndex_v2");
  if (!find(init, "nvmlInit")) {
    return "nvmlInit";
  }
  if (!find(count, "nvmlDeviceGetCount")) {
    return "nvmlDeviceGetCount";
  }
  if (!find(handle_by_index, "nvmlDeviceGetHandleByIndex")) {
    return "nvmlDeviceGetHandleByIndex";
  }
  bind_readings();
  bind_states();
  return nullptr;
}

void Nvml::Api::bind_readings() {
  find(memory_v2, "nvmlDeviceGetMemoryInfo_v2");
  find(memory, "nvmlDeviceGetMemoryInfo");
  find(utilization, "nvmlDeviceGetUtilizationRates");
  find(samples, "nvmlDeviceGetSamples");
  find(power, "nvmlDeviceGetPowerUsage");
  find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  find(power_default_limit, "nvmlDeviceGetPowerManagementDefaultLimit");
  find(energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(fields, "nvmlDeviceGetFieldValues");
  find(temperature, "nvmlDeviceGetTemperature");
  find(temperature_threshold, "nvmlDeviceGetTemperatureThreshold");
  find(clock, "nvmlDeviceGetClockInfo");
  find(max_clock, "nvmlDeviceGetMaxClockInfo");
  find(throttle, "nvmlDeviceGetCurrentClocksEventReasons");
  find(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");  // its name before driver 535
  find(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
  find(pcie_max_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  find(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
  find(pcie_max_width, "nvmlDeviceGetMaxPcieLinkWidth");
  find(pcie_throughput, "nvmlDeviceGetPcieThroughput");
  find(gpm_support, "nvmlGpmQueryDeviceSupport");
  find(gpm_alloc, "nvmlGpmSampleAlloc");
  find(gpm_free, "nvmlGpmSampleFree");
  find(gpm_sample, "nvmlGpmSampleGet");
  find(gpm_mig_sample, "nvmlGpmMigSampleGet");
  find(gpm_metrics, "nvmlGpmMetricsGet");
}

void Nvml::Api::bind_states() {
  find(shutdown, "nvmlShutdown");
  find(error_string, "nvmlErrorString");
  find(driver_version, "nvmlSystemGetDriverVersion");
  find(cuda_version, "nvmlSystemGetCudaDriverVersion_v2");
  find(cuda_version, "nvmlSystemGetCudaDriverVersion");
  find(name, "nvmlDeviceGetName");
  find(uuid, "nvmlDeviceGetUUID");
  find(pci_info, "nvmlDeviceGetPciInfo_v3");
  find(capability, "nvmlDeviceGetCudaComputeCapability");
  find(ecc_mode, "nvmlDeviceGetEccMode");
  find(ecc_errors, "nvmlDeviceGetTotalEccErrors");
  find(remapped_rows, "nvmlDeviceGetRemappedRows");
  find(persistence, "nvmlDeviceGetPersistenceMode");
  find(compute_mode, "nvmlDeviceGetComputeMode");
  find(mig_mode, "nvmlDeviceGetMigMode");
  find(mig_count, "nvmlDeviceGetMaxMigDeviceCount");
  find(mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex");
  find(gpu_instance, "nvmlDeviceGetGpuInstanceId");
  find(attributes, "nvmlDeviceGetAttributes_v2");
  find(attributes, "nvmlDeviceGetAttributes");
  find(processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  find(processes, "nvmlDeviceGetComputeRunningProcesses_v2");
  find(processes, "nvmlDeviceGetComputeRunningProcesses");
  find(process_utilization, "nvmlDeviceGetProcessUtilization");
  find(event_set_create, "nvmlEventSetCreate");
  find(event_set_free, "nvmlEventSetFree");
  find(event_register, "nvmlDeviceRegisterEvents");
  find(event_wait, "nvmlEventSetWait_v2");
  find(event_wait, "nvmlEventSetWait");
}

std::size_t Nvml::Api::process_bytes() const {
  return processes.name().ends_with("Processes") ? nvml::kShortProcess : sizeof(nvml::Process);
}

}  // namespace unidle::telemetry
