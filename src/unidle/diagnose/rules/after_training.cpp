#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// Evaluations of the trained model, in a program that also validates between its steps: a single validation at the end
/// may be the only one of so short a run.
double seconds_of_tests(const Signals& signals) {
  return signals.tests && signals.tests->beside_validations ? signals.tests->seconds : 0;
}

Evaluation evaluate_after_training(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.after_training_s || signals.wall_s <= 0) {
    return Missing{context.say("training steps (none were seen)")};
  }
  const double tests_s = seconds_of_tests(signals);
  const double after_s = *signals.after_training_s + tests_s;
  const double share = after_s / signals.wall_s;
  if (share < policy.after_training) {
    return Nothing{};
  }
  const char* phase = tests_s > *signals.after_training_s ? "validate" : "after";
  const auto hot =
      detail::hot_function(signals, [&](const HotLine& line) { return line.role == "train" && line.phase == phase; });
  const bool seen = hot && hot->looks >= detail::kEnoughStackSamples;
  if (!seen && after_s < policy.after_training_unseen_s) {
    return Missing{context.say("which lines run after the last step (stack samples)")};
  }
  Finding finding = detail::of_share(share, policy);
  finding.severity = Severity::kWarning;  // a longer run makes it less
  finding.evidence.push_back(
      context.say("{} pass between the last training step and the end of the program, {} of "
                  "the wall time; a longer run makes that a smaller share",
                  format_seconds(after_s), format_share(share)));
  if (tests_s > 0) {
    finding.evidence.push_back(context.say("{} of that evaluate the trained model", format_seconds(tests_s)));
  }
  if (seen) {
    detail::add_hot_function(context, *hot, finding);
  } else {  // native code that keeps Python's lock shows no lines
    finding.sentence = "Your run spends {share} of its time after the last training step";
  }
  return finding;
}

}  // namespace

const Rule& after_training() {
  static const Rule kRule{
      .id = "after-training",
      .verdict = Verdict::kOverheadBound,
      .title = "Work after the last training step takes an undue share of the run",
      .topic = "code after training",
      .explanation =
          "When training is done, programs generate text or pictures, draw, or evaluate once more. The device that was "
          "requested for training idles meanwhile, or works on single samples. Stack samples show the lines.",
      .thresholds =
          "The time after the last step that is neither the usual validation nor a checkpoint, from after_training (20 "
          "%) of the wall time; without stack samples that show it, from after_training_unseen_s (10 s) on. Always a "
          "warning: in a longer run the share is smaller.",
      .needs = "when the last step ended; names the function where stack samples show it",
      .proposes = "less of it, or in a program of its own that reads the checkpoint",
      .evaluate = evaluate_after_training,
      .counts = Counts::kOther,
      .sentence = "Your run spends {share} of its time after the last training step, above all at {where}",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
