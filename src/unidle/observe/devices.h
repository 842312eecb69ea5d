// Finds the machine's devices and reads them on a thread of its own, because a vendor's library may hang.
#pragma once

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "unidle/base/clock.h"
#include "unidle/telemetry/driver_call.h"
#include "unidle/telemetry/sampler.h"

namespace unidle::observe {

class Devices {
 public:
  struct Found {
    std::optional<nlohmann::json> gpus;  // for the record; nothing if unknown, an empty list if there is none
    std::string problem;                 // why devices cannot be read
    bool nvml = false;
  };

  /// Searches for devices, then reads them at every interval. `clock` must outlive it; `sink` is called on another
  /// thread.
  Devices(Clock& clock, std::int64_t root_pid, telemetry::Sink sink);

  /// Returns the devices once, when they have been found.
  std::optional<Found> take_found();
  /// Stops reading. Returns a problem if a library call did not return.
  std::optional<std::string> end();
  std::uint64_t failures() const { return sampler_ ? sampler_->failures() : 0; }

 private:
  struct Slot {
    std::mutex mutex;
    std::optional<Found> found;
  };

  std::shared_ptr<Slot> slot_;
  std::shared_ptr<telemetry::DriverCalls> calls_ = std::make_shared<telemetry::DriverCalls>();
  std::unique_ptr<telemetry::Sampler> sampler_;
};

}  // namespace unidle::observe
