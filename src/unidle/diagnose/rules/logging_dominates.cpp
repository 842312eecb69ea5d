#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

constexpr double kRarely = 0.5;  // calls per step: the program logs at an interval already

Evaluation evaluate_logging_dominates(const Context& context, const Policy& policy) {
  const auto& logging = context.signals.logging;
  if (!logging) {
    return Missing{"the time spent on logging"};
  }
  if (context.signals.wall_s <= 0) {
    return Missing{"the wall time of the run"};
  }
  const double after_start = 1 - context.train.value_or(1) - context.startup.value_or(0);
  const double share = detail::lost_by_calls(context, std::clamp(logging->seconds / context.signals.wall_s, 0.0, 1.0),
                                             std::max(0.0, after_start));
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::place(logging->where);
  finding.evidence.push_back(context.say("{} calls of logging and metrics take {}, {} of the wall time", logging->calls,
                                         format_seconds(logging->seconds), format_share(share)));
  const double steps = static_cast<double>(context.signals.steps.value_or(0));
  if (logging->where_calls && static_cast<double>(*logging->where_calls) < kRarely * steps) {
    finding.evidence.push_back(context.say(
        "most of that time goes to {} calls of one line, and to what is computed for them", *logging->where_calls));
    finding.fixes.push_back(detail::code_fix(context, "metrics.interval", "do this less often, or with less data"));
    return finding;
  }
  if (steps > 0) {
    finding.evidence.push_back(
        context.say("that is {} calls a step", format_number(static_cast<double>(logging->calls) / steps)));
  }
  finding.fixes.push_back(detail::make_fix(context, "metrics.interval", policy.metrics_interval,
                                           "log every so many steps, or from a thread of its own"));
  return finding;
}

}  // namespace

const Rule& logging_dominates() {
  static const Rule kRule{
      .id = "logging-dominates",
      .verdict = Verdict::kOverheadBound,
      .title = "Logging takes an undue share of the run",
      .topic = "logging",
      .explanation =
          "Writing a line, a picture or a histogram in every step makes training wait for files, terminals and "
          "formatting. What is looked at once a minute need not be written ten times a second.",
      .thresholds =
          "From warning_share (10 %) of the wall time; critical from critical_share (30 %). Where the line "
          "that takes most is called in fewer than half of the steps, no interval is proposed, but to do it "
          "less often, or with less data.",
      .needs = "the time of logging calls inside the loop",
      .proposes = "metrics.interval",
      .evaluate = evaluate_logging_dominates,
      .counts = Counts::kHostTime,
      .sentence = "Your run spends {share} of its time on logging",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
