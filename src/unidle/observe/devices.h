// The devices of the machine: found and read where a library that hangs holds nobody up.
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
    std::optional<nlohmann::json> gpus;  // for the record; nothing where nobody knows. An empty list: there is none
    std::string problem;                 // why they cannot be read
    bool nvml = false;
  };

  /// Looks for devices and reads them at every interval. `clock` must outlive it; `sink` is called on another thread.
  Devices(Clock& clock, std::int64_t root_pid, telemetry::Sink sink);

  /// Once, as soon as they are found.
  std::optional<Found> take_found();
  /// Ends the readings. What is wrong, if a library did not come back.
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
