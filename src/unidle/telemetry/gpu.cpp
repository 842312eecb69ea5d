#include "unidle/telemetry/gpu.h"

#include <fmt/format.h>

#include <utility>

namespace unidle::telemetry {

namespace {

class GpuSource final : public Source {
 public:
  explicit GpuSource(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}

  std::string_view name() const override { return "nvml"; }

  void read(std::int64_t t_ns, const Sink& sink) override {
    const Measured<unsigned> count = nvml_->count();
    for (unsigned gpu = 0; gpu < count.value.value_or(0); ++gpu) {
      const std::string subject = fmt::format("gpu{}", gpu);
      const auto put = [&](std::string_view series, std::string_view unit, const std::optional<double>& value) {
        if (value) {
          sink({series, unit, subject, t_ns, *value});
        }
      };
      put("gpu.utilisation", "share", nvml_->utilisation(gpu).value);
      if (const auto memory = nvml_->memory(gpu)) {
        put("gpu.memory", "bytes", static_cast<double>((*memory).used_bytes));
      }
      put("gpu.power", "W", nvml_->power_w(gpu).value);
      put("gpu.temperature", "C", nvml_->temperature_c(gpu).value);
      put("gpu.sm_clock", "MHz", nvml_->sm_clock_mhz(gpu).value);
    }
  }

 private:
  std::unique_ptr<Nvml> nvml_;
};

}  // namespace

std::vector<GpuFacts> read_gpu_facts(Nvml& nvml) {
  std::vector<GpuFacts> facts;
  const unsigned count = nvml.count().value.value_or(0);
  for (unsigned gpu = 0; gpu < count; ++gpu) {
    const auto memory = nvml.memory(gpu).value;
    facts.push_back({gpu, nvml.name(gpu).value.value_or("unknown"),
                     memory ? std::optional(memory->total_bytes) : std::nullopt, nvml.capability(gpu).value});
  }
  return facts;
}

std::unique_ptr<Source> gpu_source(std::unique_ptr<Nvml> nvml) { return std::make_unique<GpuSource>(std::move(nvml)); }

}  // namespace unidle::telemetry
