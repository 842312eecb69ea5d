#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_precision_fp64(const Context& context, const Policy& policy) {
  if (context.signals.model_dtype.empty()) {
    return Missing{context.say("the format of the model's parameters")};
  }
  if (context.signals.model_dtype != "float64") {
    return Nothing{};
  }
  if (!context.computing) {
    return Missing{context.no_computing};
  }
  const double share = *context.computing * (1 - 1 / policy.double_precision_loss);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.severity = Severity::kWarning;
  finding.evidence = {
      context.say("the parameters of the model are float64"),
      context.say("forward and backward take {} of the wall time; float32 needs half the memory traffic and at most "
                  "half the time "
                  "for arithmetic",
                  format_share(*context.computing)),
  };
  return finding;
}

}  // namespace

const Rule& precision_fp64() {
  static const Rule kRule{
      .id = "precision-fp64",
      .verdict = Verdict::kComputeBound,
      .title = "The model computes in double precision",
      .topic = "double precision",
      .explanation =
          "A model becomes float64 by model.double() or torch.set_default_dtype(torch.float64), often because its data "
          "comes from NumPy, whose default that is. Vectors then hold half as many numbers, few GPUs have matrix units "
          "for them, and autocast leaves such operations as they are. Few models need it.",
      .thresholds =
          "Share = compute x (1 - 1/double_precision_loss), loss 2: a vector register holds half as many float64 "
          "numbers, and an A100 or H100 has half the rate; GPUs for games and workstations have 1/32 or 1/64, so the "
          "gain may be larger. Operations that are too small to fill the device gain less. A warning from "
          "warning_share (10 %), never critical: some models need the digits.",
      .needs = "the format of the model's parameters, step times",
      .proposes = "train it in float32 (model.float(), and its inputs too), and compare the losses",
      .evaluate = evaluate_precision_fp64,
      .counts = Counts::kDeviceTime,
      .sentence = "Your model computes in double precision",
      .shows = Symptom::kUseOfDevice,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
