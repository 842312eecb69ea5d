#include <fmt/format.h>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_run_timed_out(const Context& context, const Policy&) {
  const Signals& signals = context.signals;
  if (signals.outcome != Outcome::kTimedOut) {
    if (auto hint = detail::earlier_attempt(context, true)) {
      return *std::move(hint);
    }
  }
  if (signals.outcome == Outcome::kUnknown) {
    return Missing{context.say("how the run ended")};
  }
  if (signals.outcome != Outcome::kTimedOut) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = Severity::kCritical;
  finding.evidence.push_back(signals.wall_s > 0
                                 ? context.say("the time limit ended the run after {}", format_seconds(signals.wall_s))
                                 : context.say("the time limit ended the run, after an unknown time"));
  return finding;
}

}  // namespace

const Rule& run_timed_out() {
  static const Rule kRule{
      .id = "run-timed-out",
      .verdict = Verdict::kFailed,
      .title = "The time limit ended the run",
      .topic = "time limit",
      .explanation =
          "The run did not end by itself: the limit that was set for it, by the scheduler or on the command line, cut "
          "it off.",
      .thresholds = "None: it is so or it is not. A hint where training went on in a later attempt of the job.",
      .needs = "how the run ended",
      .proposes = "ask for more time, or make the run faster by way of the other findings",
      .evaluate = evaluate_run_timed_out,
      .counts = Counts::kOther,
      .leads = 2,
      .hint_title = "A time limit after which training went on",
      .explains = {Symptom::kFailure},
      .told = &Signals::limit_evidence,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
