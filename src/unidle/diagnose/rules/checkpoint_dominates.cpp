#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/saving_functions.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// How often the program saves; empty when that is irregular.
std::string interval(const Context& context) {
  const auto& every = context.signals.checkpoint_every;
  if (!every) {
    return "";
  }
  return *every == 1 ? context.say("the program saves after every step")
         : context.signals.checkpoint_each_epoch
             ? context.say("the program saves after each epoch, every {} steps", *every)
             : context.say("the program saves every {} steps", *every);
}

/// The share of the run that functions that save spend beside writing.
double beside_saving(const Context& context) {
  const double other = context.signals.step ? context.signals.step->other : 0;
  return detail::part_beside_saving(context.signals) * other * context.train.value_or(0);
}

Evaluation evaluate_checkpoint_dominates(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.checkpoints) {
    return Missing{context.say("when the program saves checkpoints")};
  }
  if (!context.checkpoint) {
    return Missing{context.say("the wall time of the run")};
  }
  const double beside = beside_saving(context);
  const double share = *context.checkpoint + beside;
  if (*signals.checkpoints < 1 || share < policy.checkpoint_share) {
    return Nothing{};
  }
  Finding finding;
  finding.share = share;
  finding.speedup_bound = amdahl(share);
  finding.where = detail::place(signals.checkpoint_where);
  const double each_s = signals.time.checkpoint / static_cast<double>(*signals.checkpoints);
  if (*signals.checkpoints == 1) {
    finding.severity = Severity::kInfo;
    finding.evidence.push_back(
        context.say("the one checkpoint took {}; a longer run spreads it out", format_seconds(each_s)));
    return finding;
  }
  finding.severity = std::max(Severity::kWarning, severity_of(share, policy));
  finding.evidence.push_back(context.say("{} checkpoints of {} each", *signals.checkpoints, format_seconds(each_s)));
  if (std::string often = interval(context); !often.empty()) {
    finding.evidence.push_back(std::move(often));
  }
  if (beside > 0) {
    finding.evidence.push_back(
        context.say("{} of the wall time goes into what the same functions do besides writing", format_share(beside)));
  }
  return finding;
}

}  // namespace

const Rule& checkpoint_dominates() {
  static const Rule kRule{
      .id = "checkpoint-dominates",
      .verdict = Verdict::kOverheadBound,
      .title = "Saving checkpoints takes an undue share of the run",
      .topic = "checkpoints",
      .explanation =
          "While the model is written the device waits. A checkpoint protects the work since the last one, so one "
          "every few minutes is enough for most runs, and it can be written beside the training.",
      .thresholds =
          "From checkpoint_share (10 %) of the wall time, critical from critical_share (30 %). A single checkpoint is "
          "a hint: a longer run spreads it out. What the function that saves does besides counts too, by stack "
          "samples.",
      .needs =
          "checkpoint times; how many steps lie between them, and the line that saves, where the program was observed",
      .proposes = "save less often, to a faster disk, or beside the training",
      .evaluate = evaluate_checkpoint_dominates,
      .counts = Counts::kOther,
      .sentence = "Your run spends {share} of its time on saving checkpoints",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
