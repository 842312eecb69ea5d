#include <fmt/format.h>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_layout_not_channels_last(const Context& context, const Policy& policy) {
  const auto convolutions = context.signals.model_has_convolutions;
  if (!convolutions) {
    return Missing{context.say("whether the model has convolutions")};
  }
  if (!*convolutions) {
    return Nothing{};
  }
  const auto channels_last = detail::effective_on(context, "layout.channels_last");
  if (!channels_last) {
    return Missing{context.say("the memory layout in the live program (effective layout.channels_last)")};
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
  if (!context.computing) {
    return Missing{context.no_computing};
  }
  if (*context.computing < policy.warning_share) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.where = detail::where_set(context, "layout.channels_last");
  finding.evidence = {
      context.say(
          "convolutions run in the channels-first layout on a {}; forward and backward take {} of the wall time",
          context.on_cpu ? "CPU" : "GPU in low precision", format_share(*context.computing)),
  };
  if (context.on_cpu && context.signals.model_has_depthwise == true) {
    finding.share = *context.computing * (1 - 1 / policy.layout_gain_depthwise);
    // No bound: other models and kernels may gain more than the usual factor.
    finding.evidence.push_back(
        context.say("the model has depth-wise convolutions, which run about {}x as fast channels-last",
                    format_number(policy.layout_gain_depthwise)));
  } else {
    finding.evidence.emplace_back("the gain depends on the model: compare a channels-last run with this one");
    if (context.on_cpu && context.signals.model_has_depthwise == false) {
      finding.severity = Severity::kInfo;  // plain convolutions gain next to nothing there
    }
  }
  finding.fixes.push_back(detail::make_fix(context, "layout.channels_last", true,
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
          "wrapped in transposes. On a CPU depth-wise convolutions and the element-wise work around them gain most; "
          "plain convolutions are reordered into blocks anyway and gain little.",
      .thresholds =
          "Compute from warning_share (10 %) of the wall time. A warning; with depth-wise convolutions on a CPU the "
          "share is compute x (1 - 1/layout_gain_depthwise), measured as 1.35, otherwise it stays open; a hint where "
          "a CPU is known to run plain convolutions only.",
      .needs =
          "whether the model has convolutions (and depth-wise ones), the effective layout.channels_last (on a GPU "
          "also precision.amp), step times",
      .proposes = "layout.channels_last",
      .evaluate = evaluate_layout_not_channels_last,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} runs convolutions in the slow memory layout",
      .shows = Symptom::kUseOfDevice,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
