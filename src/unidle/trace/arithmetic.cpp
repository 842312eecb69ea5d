#include <algorithm>

#include "unidle/telemetry/peak_rates.h"
#include "unidle/trace/summary.h"

namespace unidle::trace {

namespace {

constexpr double kNearlyAll = 0.9;  // of the operations; own choice

}  // namespace

double TraceSummary::all_flops() const {
  double all = 0;
  for (const FlopsOfType& of_type : flops) {
    all += of_type.flops;
  }
  return all;
}

std::optional<double> TraceSummary::flops_per_step() const {
  return flops.empty() || !step_s ? std::nullopt : std::optional(all_flops() / static_cast<double>(step_s.count));
}

std::optional<double> TraceSummary::seconds_per_step() const {
  return step_s && window_s > 0 ? std::optional(window_s / static_cast<double>(step_s.count)) : std::nullopt;
}

std::optional<double> TraceSummary::seconds_at_peak() const {
  // Several devices have no peak in common, and a host has none here.
  const auto rates = devices.size() == 1 ? telemetry::peak_rates(device_name) : std::nullopt;
  if (!rates || flops.empty()) {
    return std::nullopt;
  }
  // A product of fp32 numbers may have run as TF32 if matrix units worked. Their kernels are known by name only; other
  // types always use them.
  const bool tf32 = rates->tf32 > 0 && (matrix_s > 0 || flops.size() > 1);
  double seconds = 0;
  for (const auto& [type, operations] : flops) {
    const double peak = type == "bf16"   ? (rates->has_bf16 ? rates->half : 0)
                        : type == "fp16" ? rates->half
                        : type == "fp32" ? (tf32 ? rates->tf32 : rates->fp32)
                                         : 0;
    if (peak <= 0) {
      return std::nullopt;
    }
    seconds += operations / (peak * 1e12);
  }
  if (seconds > window_s) {
    return std::nullopt;  // nothing exceeds its peak: one of the two is wrong
  }
  return seconds / static_cast<double>(step_s ? step_s.count : 1);
}

MainType TraceSummary::main_type() const {
  const double share = flops.empty() ? 0 : flops.front().flops / std::max(all_flops(), 1.0);
  return share > 0.5 ? MainType{flops.front().type, share < kNearlyAll} : MainType{};
}

}  // namespace unidle::trace
