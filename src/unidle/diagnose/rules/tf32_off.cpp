#include <algorithm>
#include <cstdlib>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// Convolutions use TF32 unless it was switched off. Their share of the work is estimated from their parameters.
std::optional<double> part_without_tf32(const Signals& signals) {
  if (!signals.model_has_convolutions.value_or(false) || !signals.convolutions_tf32.value_or(true)) {
    return 1;
  }
  if (!signals.model_convolution_parameters || signals.model_parameters.value_or(0) <= 0) {
    return std::nullopt;
  }
  return std::clamp(
      1 - static_cast<double>(*signals.model_convolution_parameters) / static_cast<double>(*signals.model_parameters),
      0.0, 1.0);
}

Evaluation evaluate_tf32_off(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (context.on_cpu) {
    return Missing{"TF32 units (the device is a CPU)"};
  }
  if (!signals.gpu_capability) {
    return Missing{"what formats the device has units for"};
  }
  if (std::atoi(signals.gpu_capability->c_str()) < policy.tf32_capability) {
    return Nothing{};
  }
  const auto tf32 = detail::effective_on(context, "precision.tf32");
  if (!tf32) {
    return Missing{"whether TF32 is allowed (effective precision.tf32)"};
  }
  if (*tf32 || signals.model_in_16_bits() || detail::effective_on(context, "precision.amp").value_or(false)) {
    return Nothing{};  // under autocast the products are not in fp32
  }
  if (signals.kernels && signals.kernels->matrix_share > policy.mostly) {
    return Nothing{};  // measured: the model itself is in a 16-bit format
  }
  if (!context.computing) {
    return Missing{context.no_computing};
  }
  const auto part = part_without_tf32(signals);
  if (!part) {
    return Missing{"how much of the model are convolutions, which cuDNN computes in TF32"};
  }
  const double compute = *context.computing;
  const double share = compute * *part * (1 - 1 / policy.tf32_gain);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.severity = Severity::kWarning;
  finding.where = detail::where_set(context, "precision.tf32");
  finding.evidence = {
      context.say("the GPU (compute capability {}) has TF32 units, and fp32 products do not use them",
                  *signals.gpu_capability),
      context.say("forward and backward take {} of the wall time", format_share(compute)),
  };
  if (signals.kernels) {
    finding.evidence.push_back(context.say("in the profiled steps {} of the kernels' time is on matrix units",
                                           format_share(signals.kernels->matrix_share)));
  }
  finding.fixes.push_back(
      detail::make_fix(context, "precision.tf32", true, "torch.set_float32_matmul_precision(\"high\")"));
  return finding;
}

}  // namespace

const Rule& tf32_off() {
  static const Rule kRule{
      .id = "tf32-off",
      .verdict = Verdict::kComputeBound,
      .title = "fp32 matrix products run without TF32",
      .topic = "TF32",
      .explanation =
          "From the Ampere generation on, tensor cores multiply fp32 numbers rounded to 10 bits of mantissa (TF32) at "
          "a multiple of the plain fp32 rate. PyTorch leaves that off for matrix products unless it is asked for.",
      .thresholds =
          "Share = the time that the device is busy, wherever the host waits for it, less the part of convolutions "
          "that use TF32 (by their parameters), x (1 - 1/tf32_gain), gain 2: peak rates differ by 8 (NVIDIA A100 data "
          "sheet: 156 and 19.5 TFLOP/s), whole steps by far less. A warning from warning_share (10 %), never "
          "critical. Nothing where a profiled window has most of the kernels' time on matrix units.",
      .needs = "the GPU's compute capability, the effective precision.tf32 and precision.amp, step times",
      .proposes = "precision.tf32",
      .evaluate = evaluate_tf32_off,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} multiplies fp32 matrices without TF32",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
