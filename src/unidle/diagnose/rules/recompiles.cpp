#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_recompiles(const Context& context, const Policy& policy) {
  const auto& compile = context.signals.compile;
  if (!compile) {
    return detail::effective_on(context, "compile.mode") == false ? Evaluation(Nothing{})
                                                                  : Evaluation(Missing{"what the compiler did"});
  }
  if (!compile->compiled || compile->recompilations < 1) {
    return Nothing{};
  }
  if (context.signals.wall_s <= 0) {
    return Missing{"the wall time of the run"};
  }
  // The device idles while the compiler runs, but its own events, before and after, count that time as busy.
  const double compiling = std::clamp(compile->seconds / context.signals.wall_s, 0.0, 1.0);
  const double share = context.signals.busy_by_events
                           ? compiling
                           : detail::lost_by_calls(context, compiling, 1 - context.train.value_or(1));
  const bool gives_up = compile->recompilations >= policy.recompile_limit;
  if (compile->recompilations < policy.recompiles || (share < policy.warning_share && !gives_up)) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.severity = std::max(finding.severity, Severity::kWarning);
  finding.where = detail::place(context.signals.model_where);
  finding.evidence.push_back(context.say("the step was compiled anew {} times, {} in all ({} of the wall time)",
                                         compile->recompilations, format_seconds(compile->seconds),
                                         format_share(share)));
  if (!compile->reason.empty()) {
    finding.evidence.push_back(context.say("the compiler's reason: {}", compile->reason));
  }
  if (context.signals.batch_shapes.value_or(1) > 1) {
    finding.evidence.push_back(context.say("{} different batch shapes were seen", *context.signals.batch_shapes));
  }
  if (gives_up) {
    finding.evidence.push_back(
        context.say("after {} times torch gives up and runs the function uncompiled", policy.recompile_limit));
  }
  return finding;
}

}  // namespace

const Rule& recompiles() {
  static const Rule kRule{
      .id = "recompiles",
      .verdict = Verdict::kComputeBound,
      .title = "The compiler starts over again and again",
      .topic = "recompilation",
      .explanation =
          "A compiled step holds for the shapes, types and Python values that it was compiled for. When they vary, "
          "the compiler starts over, and after some times it gives up and runs the plain program. Fixed shapes "
          "(drop_last, buckets, padding to a few lengths) or dynamic=True keep one compiled step.",
      .thresholds =
          "From recompiles (3) new compilations that take warning_share (10 %) of the wall time, or recompile_limit "
          "(8, the default of torch._dynamo.config.recompile_limit) of them. Where nothing but the steps' own events "
          "tells how busy a GPU is, all of the compiler's time counts: they lie around it.",
      .needs = "how often and how long the compiler ran",
      .proposes = "keep batch shapes fixed (drop_last=True, padding to a few lengths), or compile with dynamic=True",
      .evaluate = evaluate_recompiles,
      .counts = Counts::kHostTime,
      .sentence = "Your run loses {share} of its time to recompiling",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
