#include <cstdlib>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"
#include "unidle/knobs/same_value.h"

namespace unidle::diagnose::rules {

namespace {

/// Whether the device lacks units for bf16; nothing when not known.
std::optional<bool> without_units(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (context.on_cpu) {
    return signals.cpu_bf16 ? std::optional(!*signals.cpu_bf16) : std::nullopt;
  }
  if (signals.device_kind != "cuda" || !signals.gpu_capability) {
    return std::nullopt;
  }
  return std::atoi(signals.gpu_capability->c_str()) < policy.bf16_capability;
}

/// The format that the device computes fastest: fp16 on a GPU that has tensor cores for it, otherwise fp32.
std::string better_format(const Context& context, const Policy& policy) {
  const bool fp16 = !context.on_cpu && std::atoi(context.signals.gpu_capability->c_str()) >= policy.fp16_capability;
  return fp16 ? "fp16" : "off";
}

Evaluation evaluate_precision_emulated(const Context& context, const Policy& policy) {
  const auto amp = context.signals.effective("precision.amp");
  if (!amp) {
    return Missing{"the precision in the live program (effective precision.amp)"};
  }
  const bool in_model = context.signals.model_dtype == "bfloat16";
  if (!in_model && !knobs::same_value(*amp, "bf16")) {
    return Nothing{};
  }
  const auto lacking = without_units(context, policy);
  if (!lacking) {
    return Missing{"what formats the device has units for"};
  }
  if (!*lacking) {
    return Nothing{};
  }
  if (!context.computing) {
    return Missing{context.no_computing};
  }
  const double share = *context.computing * (1 - 1 / policy.emulation_loss);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::where_set(context, "precision.amp");
  const std::string used = in_model ? context.say("the model's parameters are in bf16")
                                    : context.say("forward passes run under bf16 autocast");
  finding.evidence = {
      context.on_cpu ? context.say("{}, and this CPU has no units for it", used)
                     : context.say("{}, and the GPU (compute capability {}) has no units for it", used,
                                   *context.signals.gpu_capability),
      context.say("forward and backward take {} of the wall time; emulated products can take {}x as long",
                  format_share(*context.computing), format_number(policy.emulation_loss)),
  };
  finding.fixes.push_back(
      in_model ? detail::code_fix(context, "precision.amp", "keep the model in float32, without .to(torch.bfloat16)")
               : detail::make_fix(context, "precision.amp", better_format(context, policy),
                                  "compute in a format that the device has units for"));
  return finding;
}

}  // namespace

const Rule& precision_emulated() {
  static const Rule kRule{
      .id = "precision-emulated",
      .verdict = Verdict::kComputeBound,
      .title = "The device emulates bf16",
      .topic = "16-bit formats",
      .explanation =
          "A CPU without AVX512-BF16 or AMX, and a GPU before Ampere, have no units for bf16. Under bf16 autocast they "
          "convert each number, compute in fp32 and convert back, which is slower than fp32 itself. Launchers and "
          "configurations switch autocast on inside the forward pass, where the program does not show it.",
      .thresholds =
          "Share = compute x (1 - 1/emulation_loss), loss 4: measured 2.2 to 4.6 on CPUs. From warning_share (10 %) of "
          "the wall time; critical from critical_share (30 %).",
      .needs = "the effective precision.amp, the GPU's compute capability or the CPU's flags, step times",
      .proposes = "precision.amp: fp16 on a GPU with tensor cores, otherwise off",
      .evaluate = evaluate_precision_emulated,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} emulates bf16, for which it has no units",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
