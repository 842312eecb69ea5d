// What a GPU can compute at most, by its maker's data sheet.
#pragma once

#include <optional>
#include <string_view>

namespace unidle::telemetry {

/// Dense rates in TFLOP/s: without structured sparsity, with fp32 accumulation. 0: the device has no units for it.
struct PeakRates {
  double half = 0;  // bf16 and fp16 on matrix units
  double tf32 = 0;  // fp32 on matrix units: TF32, or AMD's XF32
  double fp32 = 0;  // fp32 on ordinary units
};

/// `name`: as the driver or torch has it ("NVIDIA H100 80GB HBM3", "Tesla T4"). Nothing for an unknown device.
std::optional<PeakRates> peak_rates(std::string_view name);

}  // namespace unidle::telemetry
