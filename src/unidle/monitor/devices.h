// Reads devices for the collector, where a driver that hangs holds nobody up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unidle/telemetry/driver_call.h"
#include "unidle/telemetry/gpu.h"

namespace unidle::monitor {

/// Not thread-safe. Goes on when a driver that did not answer does so in the end.
class Devices {
 public:
  struct Device {
    telemetry::GpuReader::Subject subject;
    std::optional<telemetry::GpuFacts> facts;      // of the whole device
    std::vector<telemetry::GpuProcess> processes;  // only where `slow` was asked for
  };

  /// Begins to look for them.
  Devices();
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  /// True when they are found, or when the driver does not answer: what there is can be read then.
  bool looked();
  /// What they do now, see telemetry::GpuReader::read. Waits a second; nothing as long as the driver has not answered.
  std::optional<std::vector<Device>> read(std::int64_t t_ns, bool slow);
  /// False when nobody knows which devices there are.
  bool known() const { return known_; }
  /// "the driver does not answer (nvmlInit_v2, 5 s)", while that is so.
  std::optional<std::string> problem() const;

 private:
  struct Shared;

  void begin(void (*work)(Shared&, std::int64_t, bool), std::int64_t t_ns, bool slow);
  bool over();

  std::shared_ptr<Shared> shared_;  // belongs to the work while it is under way
  std::unique_ptr<telemetry::DriverWork> work_;
  bool waited_ = false;  // for this work: a second time nobody does
  bool known_ = true;
};

}  // namespace unidle::monitor
