#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_loss_not_finite(const Context& context, const Policy& policy) {
  const auto& losses = context.signals.losses;
  if (!losses || losses->seen == 0) {
    return Missing{context.say("the loss of the training steps")};
  }
  if (losses->lasting < policy.lasting_losses) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = Severity::kCritical;
  finding.failure = context.say("from step {} on, until the end of the run", losses->first_step);
  if (losses->last_finite) {
    finding.evidence.push_back(
        context.say("the loss of step {} is {:.4g}; none of the {} losses seen from step {} on is "
                    "a finite number",
                    losses->last_finite->first, losses->last_finite->second, losses->lasting, losses->first_step));
  } else {
    finding.evidence.push_back(context.say("none of the {} losses that were seen is a finite number", losses->lasting));
  }
  finding.evidence.push_back(
      context.say("unless the program skips the update of such a step, its parameters are not finite either, and all "
                  "later training is lost"));
  return finding;
}

}  // namespace

const Rule& loss_not_finite() {
  static const Rule kRule{
      .id = "loss-not-finite",
      .verdict = Verdict::kUnknown,
      .title = "The loss is NaN or infinite",
      .topic = "finite losses",
      .explanation =
          "A learning rate that is too high, a division by zero, a logarithm of zero, 16-bit numbers that overflow or "
          "a damaged sample make the loss NaN or infinite. Once parameters are not finite, no later step brings them "
          "back. "
          "This says nothing about speed: the run is as fast as before, and its result is worthless. A loss that is "
          "not finite now and then, as with a gradient scaler, does not count.",
      .thresholds = "At least lasting_losses (3) losses that are not finite, with no finite one after them. Critical.",
      .needs = "losses, which are seen where the program reads them, or trains on a CPU",
      .proposes =
          "go back to a checkpoint before that step, and look at its batch, the learning rate and the precision "
          "(torch.autograd.set_detect_anomaly names the operation)",
      .evaluate = evaluate_loss_not_finite,
      .counts = Counts::kOther,
      .leads = 5,
      .sentence = "Your run's loss is NaN or infinite",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
