#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

struct Units {
  std::string format;  // empty: no units for a 16-bit format
  std::string evidence;
  double gain = 1;
};

/// The formats below fp32 that the device supports; nothing when not known.
std::optional<Units> units_of(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (context.on_cpu) {
    if (!signals.cpu_bf16) {
      return std::nullopt;
    }
    return *signals.cpu_bf16 ? Units{"bf16", context.say("the CPU has bf16 units"), policy.precision_gain_cpu}
                             : Units{};
  }
  if (signals.device_kind != "cuda" || !signals.gpu_capability) {
    return std::nullopt;
  }
  const int major = std::atoi(signals.gpu_capability->c_str());
  if (major < policy.fp16_capability) {
    return Units{};
  }
  return Units{major >= policy.bf16_capability ? "bf16" : "fp16",
               context.say("the GPU (compute capability {}) has tensor cores", *signals.gpu_capability),
               policy.precision_gain_cuda};
}

Evaluation evaluate_precision_fp32(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const auto amp = detail::effective_on(context, "precision.amp");
  if (!amp) {
    return Missing{"the precision in the live program (effective precision.amp)"};
  }
  if (*amp || signals.model_in_16_bits() || signals.model_dtype == "float64") {
    return Nothing{};  // autocast leaves float64 as it is
  }
  const auto units = units_of(context, policy);
  if (!units) {
    return Missing{"what formats the device has units for"};
  }
  if (units->format.empty()) {
    return Nothing{};
  }
  const bool small =
      context.signals.model_parameters.value_or(policy.low_precision_parameters) < policy.low_precision_parameters;
  if (small && context.signals.model_has_convolutions == false) {
    return Nothing{};
  }
  if (signals.kernels && signals.kernels->matrix_share > policy.mostly &&
      !detail::effective_on(context, "precision.tf32").value_or(false)) {
    return Nothing{};  // measured: the model itself is in a 16-bit format
  }
  if (!context.computing) {
    return Missing{context.no_computing};
  }
  const double compute = *context.computing;
  const double share = compute * (1 - 1 / units->gain);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = context.on_cpu ? Severity::kInfo : Severity::kWarning;
  if (!context.on_cpu) {
    finding.share = share;
    finding.speedup_bound = amdahl(share);
  }
  finding.where = detail::where_set(context, "precision.amp");
  finding.evidence = {
      context.say("{}, and the step computes in fp32", units->evidence),
      context.say("forward and backward take {} of the wall time; in {} the matrix units are up to {}x as fast",
                  format_share(compute), units->format, format_number(units->gain)),
  };
  if (context.on_cpu) {
    finding.evidence.push_back(context.say(
        "on a CPU autocast makes some programs faster and others slower: compare a run with it and one without"));
  }
  if (signals.kernels) {
    finding.evidence.push_back(context.say("in the profiled steps {} of the kernels' time is on matrix units",
                                           format_share(signals.kernels->matrix_share)));
  }
  finding.fixes.push_back(
      detail::make_fix(context, "precision.amp", units->format, "run matrix products and convolutions under autocast"));
  return finding;
}

}  // namespace

const Rule& precision_fp32() {
  static const Rule kRule{
      .id = "precision-fp32",
      .verdict = Verdict::kComputeBound,
      .title = "Units for lower precision are there and unused",
      .topic = "precision",
      .explanation =
          "GPUs since Volta and CPUs with AVX512-BF16 or AMX multiply 16-bit numbers at a multiple of their fp32 "
          "rate. Autocast uses that for matrix products and convolutions and keeps the rest in fp32. On a CPU without "
          "such units 16-bit formats are emulated and slower, so nothing is said there.",
      .thresholds =
          "Share = compute x (1 - 1/gain), gain 2 (precision_gain_cuda, precision_gain_cpu: vendor peak rates). On a "
          "GPU compute is the time that the device is busy, wherever the host waits for it; silent where it is not "
          "known how long kernels run. Silent for a model without convolutions that has fewer than "
          "low_precision_parameters (100,000) parameters, and where a profiled window has most of the kernels' time on "
          "matrix units, unless by TF32. A warning from warning_share (10 %), never critical. On a CPU a hint without "
          "a share: with autocast nine public programs ran 0.68x to 1.70x as fast (torch 2.11, two CPUs with AMX).",
      .needs = "the effective precision.amp, the GPU's compute capability or the CPU's flags, step times",
      .proposes = "precision.amp: bf16 where the device has it, otherwise fp16",
      .evaluate = evaluate_precision_fp32,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} computes in fp32 and leaves its faster units unused",
      .shows = Symptom::kUseOfDevice,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
