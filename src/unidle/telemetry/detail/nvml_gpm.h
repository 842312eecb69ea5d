// Two samples of the GPM counters of one device or MIG slice.
#pragma once

#include "unidle/telemetry/detail/nvml_api.h"

namespace unidle::telemetry {

struct Nvml::Gpm {
  explicit Gpm(Api& functions) : api(functions) {}
  ~Gpm();
  Gpm(const Gpm&) = delete;
  Gpm& operator=(const Gpm&) = delete;

  /// Takes a sample when the last one is old enough. Returns true when there are two to compare.
  bool sample(nvml::Device device, std::optional<unsigned> gpu_instance, std::int64_t t_ns);

  Api& api;
  bool usable = true;
  nvml::GpmSample older = nullptr;
  nvml::GpmSample newer = nullptr;
  std::optional<std::int64_t> newer_ns;
  nvml::GpmMetrics metrics{};
};

}  // namespace unidle::telemetry
