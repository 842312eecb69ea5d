#include <fmt/format.h>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate(const Context& context, const Policy& policy) {
  const auto convolutions = context.signals.model_has_convolutions;
  if (!convolutions) {
    return Missing{"whether the model has convolutions"};
  }
  if (!*convolutions) {
    return Nothing{};
  }
  const auto channels_last = detail::effective_on(context, "layout.channels_last");
  if (!channels_last) {
    return Missing{"the memory layout in the live program (effective layout.channels_last)"};
  }
  if (*channels_last) {
    return Nothing{};
  }
  if (!context.on_cpu) {
    const auto amp = detail::effective_on(context, "precision.amp");
    if (!context.on_gpu || !amp) {
      return Missing{context.on_gpu ? "the precision in the live program (effective precision.amp)"
                                    : "the kind of device"};
    }
    if (!*amp) {
      return Nothing{};
    }
  }
  if (!context.compute) {
    return Missing{context.no_steps};
  }
  if (*context.compute < policy.warning_share) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = context.on_gpu || policy.cpu_layout_warns ? Severity::kWarning : Severity::kInfo;
  finding.where = detail::where_set(context, "layout.channels_last");
  finding.evidence = {
      fmt::format(
          "convolutions run in the channels-first layout on a {}; forward and backward take {} of the wall time",
          context.on_cpu ? "CPU" : "GPU in low precision", format_share(*context.compute)),
      "how much of that the layout costs was not measured",
  };
  finding.fixes.push_back(detail::make_fix(context, "layout.channels_last", true, FixClass::kNumeric,
                                           "store pictures and convolution weights with the channels innermost"));
  return finding;
}

}  // namespace

const Rule& layout_not_channels_last() {
  static const Rule kRule{
      .id = "layout-not-channels-last",
      .verdict = Verdict::kComputeBound,
      .title = "Convolutions run in the slow layout",
      .topic = "memory layout",
      .explanation =
          "Tensor cores work with the channels innermost; in the other layout every low-precision convolution is "
          "wrapped in "
          "transposes. CPU kernels prefer it as well, but reorder into blocks of their own, so the loss is smaller "
          "there.",
      .thresholds =
          "Compute from warning_share (10 %) of the wall time. A warning on a GPU in low precision; on a CPU a hint "
          "(cpu_layout_warns). The share stays open: one record does not measure it.",
      .needs =
          "whether the model has convolutions, the effective layout.channels_last (on a GPU also precision.amp), step "
          "times",
      .proposes = "layout.channels_last",
      .evaluate = evaluate,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
