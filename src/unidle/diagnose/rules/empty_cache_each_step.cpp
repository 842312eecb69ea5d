#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_empty_cache_each_step(const Context& context, const Policy& policy) {
  const auto calls = detail::waits_of(context.signals, detail::Waits::kFlush);
  if (!calls) {
    return Missing{"calls that flush the allocator or collect garbage"};
  }
  if (context.signals.wall_s <= 0) {
    return Missing{"the wall time of the run"};
  }
  const double all = std::clamp(calls->seconds / context.signals.wall_s, 0.0, 1.0);
  const double share = detail::lost_by_calls(context, all, all * calls->outside);
  if (calls->per_step < policy.flushes_per_step && (share < policy.warning_share || calls->per_step <= 0)) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  if (share >= policy.flush_share) {
    finding.severity = std::max(finding.severity, Severity::kWarning);
  }
  if (context.on_cpu) {
    finding.verdict = Verdict::kOverheadBound;
  }
  finding.where = detail::place(calls->top->where);
  finding.evidence = {
      context.say("{} is called {} times a step ({})", calls->top->call, format_number(calls->per_step),
                  calls->top->where),
      context.say("these calls take {} of the wall time; what the allocator loses afterwards comes on top",
                  format_share(share)),
  };
  if (detail::effective_int(context, "memory.flush_interval").value_or(0) > 0) {
    finding.fixes.push_back(
        detail::make_fix(context, "memory.flush_interval", 0, "memory that is kept is there for the next step"));
  }
  return finding;
}

}  // namespace

const Rule& empty_cache_each_step() {
  static const Rule kRule{
      .id = "empty-cache-each-step",
      .verdict = Verdict::kSyncBound,
      .title = "The allocator is flushed, or garbage collected, inside the loop",
      .topic = "allocator flushes",
      .explanation =
          "torch.cuda.empty_cache() gives cached memory back to the driver, waits for the device to do so, and makes "
          "the next step ask for it again; gc.collect() walks all Python objects. Neither frees memory that the step "
          "could have used.",
      .thresholds =
          "From flushes_per_step (0.5) calls a step, or warning_share (10 %) of the wall time. A hint below "
          "flush_share (3 %) of the wall time.",
      .needs = "calls of empty_cache() and gc.collect() and their time",
      .proposes = "take the call out of the loop, or set memory.flush_interval where a setting asks for it",
      .evaluate = evaluate_empty_cache_each_step,
      .counts = Counts::kHostTime,
      .sentence = "Your run spends {share} of its time on clearing memory",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
