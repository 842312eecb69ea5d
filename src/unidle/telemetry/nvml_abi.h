// Our own declarations of the part of NVML's public ABI that we use: building needs no NVIDIA header. The layout of a
// versioned function never changes; an extended layout gets a new version under a new symbol.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unidle::telemetry::nvml {

using Device = void*;
using EventSet = void*;
using GpmSample = void*;

/// nvmlReturn_t, the values we distinguish.
constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kDriverNotLoaded = 9;
constexpr int kTimeout = 10;
constexpr int kFunctionNotFound = 13;
constexpr int kGpuIsLost = 15;
constexpr int kVersionMismatch = 18;
constexpr int kUnknown = 999;

constexpr unsigned kTemperatureGpu = 0;     // nvmlTemperatureSensors_t
constexpr unsigned kThresholdSlowdown = 1;  // nvmlTemperatureThresholds_t
constexpr unsigned kClockSm = 1;            // nvmlClockType_t
constexpr unsigned kClockMemory = 2;
constexpr unsigned kPcieTx = 0;  // nvmlPcieUtilCounter_t
constexpr unsigned kPcieRx = 1;
constexpr unsigned kEccUncorrected = 1;        // nvmlMemoryErrorType_t
constexpr unsigned kEccVolatile = 0;           // nvmlEccCounterType_t: since the driver was loaded
constexpr unsigned kUtilisationSamples = 1;    // nvmlSamplingType_t: GPU utilisation in percent
constexpr unsigned long long kEventXid = 0x8;  // nvmlEventTypeXidCriticalError
constexpr unsigned kNoInstance = 0xFFFFFFFFU;  // of a process or an event outside MIG
constexpr unsigned kFieldPowerAverage = 185;   // NVML_FI_DEV_POWER_AVERAGE, mW, over a second
constexpr unsigned kFieldPowerInstant = 186;   // NVML_FI_DEV_POWER_INSTANT, mW

/// nvmlClocksEventReason...: why the clocks are below their maximum.
constexpr std::uint64_t kReasonIdle = 0x1;
constexpr std::uint64_t kReasonApplicationClocks = 0x2;
constexpr std::uint64_t kReasonPowerCap = 0x4;
constexpr std::uint64_t kReasonHardwareSlowdown = 0x8;
constexpr std::uint64_t kReasonSyncBoost = 0x10;
constexpr std::uint64_t kReasonSoftwareThermal = 0x20;
constexpr std::uint64_t kReasonHardwareThermal = 0x40;
constexpr std::uint64_t kReasonPowerBrake = 0x80;
constexpr std::uint64_t kReasonDisplayClocks = 0x100;

/// NVML_GPM_METRIC_...
constexpr unsigned kGpmSmActivity = 2;
constexpr unsigned kGpmSmOccupancy = 3;
constexpr unsigned kGpmTensorActivity = 5;
constexpr unsigned kGpmDramActivity = 10;
constexpr unsigned kGpmPcieTx = 20;  // MiB/s, from the GPU
constexpr unsigned kGpmPcieRx = 21;  // MiB/s, to the GPU
/// Minimum time between two samples: the driver refreshes its counters no faster.
constexpr std::int64_t kGpmSpacing_ns = 100'000'000;

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
struct MemoryV2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemoryV2Version = sizeof(MemoryV2) | (2U << 24);
struct Utilization {  // nvmlUtilization_t
  unsigned gpu, memory;
};
/// nvmlProcessInfo_v2_t, filled by _v2 and _v3 of the function. The first version ends before the instances; drivers
/// 535.43 to 535.86 append eight bytes under the same name.
struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
constexpr std::size_t kShortProcess = 16;
constexpr std::size_t kLongProcess = 32;
union Value {  // nvmlValue_t
  double real;
  unsigned number;
  unsigned long long big;
};
struct Sample {  // nvmlSample_t
  unsigned long long t_us;
  Value value;
};
struct FieldValue {  // nvmlFieldValue_t
  unsigned field, scope;
  long long t_us, latency_us;
  unsigned type;
  int result;
  Value value;
};
struct ProcessUtilization {  // nvmlProcessUtilizationSample_t
  unsigned pid;
  unsigned long long t_us;
  unsigned sm, memory, encoder, decoder;
};
struct PciInfo {  // nvmlPciInfo_t, as nvmlDeviceGetPciInfo_v3 fills it
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Attributes {  // nvmlDeviceAttributes_t, of a MIG device
  unsigned multiprocessors, copy_engines, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
  unsigned long long memory_mib;
};
struct EventData {  // nvmlEventData_t
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
struct GpmSupport {  // nvmlGpmSupport_t
  unsigned version, supported;
};
struct GpmMetric {  // nvmlGpmMetric_t
  unsigned metric;
  int result;
  double value;
  const char *short_name, *long_name, *unit;
};
/// nvmlGpmMetricsGet_t. Its array grew between headers (98, 210, 333 entries) under the same version number. Ours is
/// longer than all of them; only `count` entries are used.
struct GpmMetrics {
  unsigned version, count;
  GpmSample first, second;
  GpmMetric metrics[512];
};

static_assert(sizeof(Memory) == 24 && sizeof(MemoryV2) == 40 && offsetof(MemoryV2, used) == 32);
static_assert(sizeof(Process) == 24 && offsetof(Process, used_bytes) == 8);
static_assert(offsetof(Process, gpu_instance) == kShortProcess);
static_assert(sizeof(Sample) == 16 && sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);
static_assert(sizeof(ProcessUtilization) == 32 && offsetof(ProcessUtilization, sm) == 16);
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);
static_assert(sizeof(Attributes) == 40 && offsetof(Attributes, memory_mib) == 32);
static_assert(sizeof(EventData) == 32 && offsetof(EventData, gpu_instance) == 24);
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetrics, metrics) == 24 && sizeof(GpmSupport) == 8);

}  // namespace unidle::telemetry::nvml
