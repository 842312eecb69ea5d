// Reads devices for the collector without blocking it when a driver hangs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unidle/telemetry/driver_call.h"
#include "unidle/telemetry/gpu.h"

namespace unidle::monitor {

/// Not thread-safe. Recovers when a driver that did not answer does so later.
class Devices {
 public:
  struct Device {
    telemetry::GpuReader::Subject subject;
    std::optional<telemetry::GpuFacts> facts;      // of the whole device
    std::vector<telemetry::GpuProcess> processes;  // only when `slow` was requested
  };

  /// Starts looking for devices in the background.
  Devices();
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  /// True when the devices are found or the driver does not answer: read() then returns what is available.
  bool looked();
  /// Reads the devices, see telemetry::GpuReader::read. Waits at most a second; empty while the driver does not answer.
  std::optional<std::vector<Device>> read(std::int64_t t_ns, bool slow);
  /// False when the number of devices is unknown.
  bool known() const { return known_; }
  /// For example "the driver does not answer (nvmlInit_v2, 5 s)"; empty while the driver answers.
  std::optional<std::string> problem() const;

 private:
  struct Shared;

  void begin(void (*work)(Shared&, std::int64_t, bool), std::int64_t t_ns, bool slow);
  bool over();

  std::shared_ptr<Shared> shared_;  // owned by the worker thread while it runs
  std::unique_ptr<telemetry::DriverWork> work_;
  bool waited_ = false;  // already waited for this reading; do not wait again
  bool known_ = true;
};

}  // namespace unidle::monitor
