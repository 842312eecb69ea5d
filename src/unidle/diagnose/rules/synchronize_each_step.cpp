#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_synchronize_each_step(const Context& context, const Policy& policy) {
  const auto waits = detail::waits_of(context.signals, detail::Waits::kSynchronize);
  if (!waits) {
    return Missing{"calls that synchronise the device"};
  }
  if (waits->per_step < policy.syncs_per_step) {
    return Nothing{};
  }
  if (!context.sync) {
    return Missing{context.no_steps};
  }
  const auto share = detail::lost_by_waiting(context, *context.sync * waits->of_all);
  if (!share) {
    return Missing{"how busy the device is"};
  }
  if (*share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(*share, policy);
  finding.where = detail::place(waits->top->where);
  finding.evidence = {
      context.say("synchronize() is called {} times a step", format_number(waits->per_step)),
      context.say("these waits take {} of the wall time", format_share(*context.sync * waits->of_all)),
  };
  return finding;
}

}  // namespace

const Rule& synchronize_each_step() {
  static const Rule kRule{
      .id = "synchronize-each-step",
      .verdict = Verdict::kSyncBound,
      .title = "The device is synchronised explicitly in the loop",
      .topic = "explicit synchronisation",
      .explanation =
          "torch.cuda.synchronize() in the loop, mostly left over from timing code, stops the host until the device "
          "has done everything; the device then idles until the host has queued the next step.",
      .thresholds =
          "From syncs_per_step (0.9) calls a step and warning_share (10 %) of the wall time; on a GPU no more than "
          "the time the device was idle.",
      .needs = "calls of synchronize() and their time, how busy the device is",
      .proposes = "take the call out of the loop, and measure time with events",
      .evaluate = evaluate_synchronize_each_step,
      .counts = Counts::kHostTime,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
