#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_model_called_in_loop(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.step || !context.train || !context.compute) {
    return Missing{context.no_steps};
  }
  if (!signals.operations || !signals.operations->calls_per_backward) {
    return Missing{"how often a step calls the model"};
  }
  if (context.on_gpu && !context.idle) {
    return Missing{context.say("how long the device idles")};
  }
  const OperationFacts& operations = *signals.operations;
  const double calls = *operations.calls_per_backward;
  if (calls < policy.many_calls || operations.call_s > policy.small_call_s) {
    return Nothing{};
  }
  const double compute = *context.compute * operations.part_of_forward;
  const double share = std::min(compute, context.on_gpu ? *context.idle : 1.0);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.severity = Severity::kWarning;  // nothing shows whether a call needs the result of the one before
  finding.speedup_bound.reset();
  finding.where = detail::place(signals.model_where);
  finding.evidence = {
      context.say("each backward pass follows {:.0f} calls of one model, of {} each", calls,
                  format_seconds(operations.call_s)),
      context.say("forward and backward pass take {} of the wall time", format_share(*context.compute)),
  };
  return finding;
}

}  // namespace

const Rule& model_called_in_loop() {
  static const Rule kRule{
      .id = "model-called-in-loop",
      .verdict = Verdict::kOverheadBound,
      .title = "Each step calls the model many times for little work",
      .topic = "loops that call the model",
      .explanation =
          "A call of a model costs Python and dispatch for each of its operations, however little they compute, and "
          "the backward pass pays for each of them again. A training loop that calls the model for one time step, one "
          "sample or one environment at a time pays that in each iteration, while the device or the other CPUs have "
          "nothing to do.",
      .thresholds =
          "One model is called at least many_calls (20) times for each backward pass, and a call takes at most "
          "small_call_s (3 ms). The share is that part of forward and backward pass, from warning_share (10 %) of the "
          "wall time. Always a warning, without a bound: nothing shows whether a call needs the result of the one "
          "before. On a GPU at most the time that it idles.",
      .needs = "step times, the calls of the model in a step",
      .proposes =
          "give the model all time steps, samples or environments in one call where none needs the result of another",
      .evaluate = evaluate_model_called_in_loop,
      .counts = Counts::kHostTime,
      .sentence = "Your run spends {share} of its time on many small calls of the model at {where}",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
