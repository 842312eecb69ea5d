// What a GPU can compute at most, by its maker's data sheet.
#pragma once

#include <optional>
#include <string_view>

namespace unidle::telemetry {

/// Dense rates in TFLOP/s: without structured sparsity, with fp32 accumulation. 0: the device has no units for it.
struct PeakRates {
  double half = 0;  // fp16, and bf16 if it has units for it, on matrix units
  double tf32 = 0;  // fp32 with fewer digits on matrix units: TF32, or AMD's XF32
  double fp32 = 0;  // with all digits: on ordinary units, or AMD's matrix units where those are faster
  bool has_bf16 = true;
};

/// `name`: as the driver or torch has it ("NVIDIA H100 80GB HBM3", "Tesla T4"). Nothing for an unknown device, and for
/// a name with an unknown word: a part of a device (MIG, vGPU) and a slower variant (Laptop, D, Max-Q) have other
/// rates.
std::optional<PeakRates> peak_rates(std::string_view name);

}  // namespace unidle::telemetry
