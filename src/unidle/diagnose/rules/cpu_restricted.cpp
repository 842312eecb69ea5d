#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

struct Demand {
  double allowed = 0;    // CPUs allowed for the part that lacks them
  double cpus = 0;       // CPUs that the job would use
  double share = 0;      // the most that they would save, of the wall time
  bool by_step = false;  // the step itself lacks them, not the loader
};

/// CPUs for the workers, which may be restricted further than the training process.
double cpus_of_loader(const Context& context) {
  return std::min(*context.cpus, context.signals.cpus_of_workers.value_or(*context.cpus));
}

/// In use by this job, or by other processes.
bool in_use(const Context& context, const Policy& policy, double cpus) {
  return *context.signals.cpus_used >= policy.cpus_full * cpus || detail::cpus_full(context, policy).value_or(false);
}

std::optional<Demand> demand_of(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const double cpus = cpus_of_loader(context);
  const double workers = static_cast<double>(context.workers.value_or(0));
  const double threads = context.on_cpu ? context.cpu_threads.value_or(1) : 1;
  if (workers > cpus && context.work_s && context.rest_s && *context.steady_input >= policy.warning_share) {
    const double wanted = std::min(*signals.cpus_online, workers + threads);
    const double bound_s = overlapped_step_s(context, *context.work_s).value_or(*signals.step_s);
    const double now_s = std::min(*signals.step_s, std::max(bound_s, *context.work_s / cpus));
    const double best_s = std::max(*context.rest_s, now_s * cpus / wanted);
    return Demand{
        cpus, wanted,
        std::min(*context.steady_input, std::max(0.0, now_s - best_s) / *signals.step_s * context.train.value_or(1)),
        false};
  }
  if (context.on_cpu && threads > *context.cpus + policy.restricted_cpus &&
      context.compute.value_or(0) >= policy.warning_share) {
    const double wanted = std::min(*signals.cpus_online, threads);
    return Demand{*context.cpus, wanted, *context.compute * (1 - *context.cpus / wanted), true};
  }
  return std::nullopt;
}

void add_limits(const Context& context, Finding& finding, double allowed) {
  const Signals& signals = context.signals;
  if (allowed < *context.cpus) {
    finding.evidence.push_back(
        context.say("the loader's workers may use {} of the job's {} CPUs by their affinity masks",
                    format_number(allowed), format_number(*context.cpus)));
  } else if (signals.cpus_at_start) {
    finding.evidence.push_back(context.say(
        "the program narrowed itself to {} of the {} CPUs that it might use when it started (affinity mask)",
        format_number(allowed), format_number(*signals.cpus_at_start)));
  } else {
    finding.evidence.push_back(
        context.say("the job may use {} of this machine's {} CPUs (affinity mask and cgroup quota together)",
                    format_number(allowed), format_number(*signals.cpus_online)));
  }
}

Evaluation evaluate_cpu_restricted(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!context.cpus || !signals.cpus_online) {
    return Missing{"the CPUs of this machine and those that the run may use"};
  }
  const double cpus = cpus_of_loader(context);
  if (*signals.cpus_online < cpus + policy.restricted_cpus) {
    return Nothing{};
  }
  if (!signals.cpus_used) {
    return Missing{"the CPUs that the run may use and did use"};
  }
  if (!context.steady_input) {
    return Missing{context.no_steps};
  }
  if (!in_use(context, policy, cpus)) {
    return Nothing{};
  }
  const auto demand = demand_of(context, policy);
  if (!demand || demand->share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(demand->share, policy);
  add_limits(context, finding, demand->allowed);
  finding.evidence.push_back(context.say("it would use {} and keeps its {} busy at {}", format_number(demand->cpus),
                                         format_number(demand->allowed), format_number(*signals.cpus_used)));
  if (demand->by_step) {
    finding.verdict = Verdict::kComputeBound;
    finding.fixes.push_back(
        detail::make_fix(context, "cpu.threads", static_cast<std::int64_t>(std::max(1.0, std::floor(demand->allowed))),
                         "ask for more CPUs (--cpus-per-task, --cpus, taskset); until then no more threads than CPUs"));
  } else {
    finding.fixes.push_back(detail::make_fix(
        context, "loader.workers", static_cast<std::int64_t>(std::max(1.0, std::floor(demand->allowed))),
        "ask for more CPUs (--cpus-per-task, --cpus, taskset); until then no more workers than CPUs"));
  }
  return finding;
}

}  // namespace

const Rule& cpu_restricted() {
  static const Rule kRule{
      .id = "cpu-restricted",
      .verdict = Verdict::kInputBound,
      .title = "The job may use fewer CPUs than it tries to use",
      .topic = "CPU limits",
      .explanation =
          "An affinity mask, a container's CPU quota or the scheduler's --cpus-per-task gives the job fewer CPUs than "
          "the machine has and than its workers or threads would use. The program sees all CPUs, starts as many "
          "workers, and they take turns on a few. A program may also narrow itself after it has started, and its "
          "workers inherit that.",
      .thresholds =
          "At least restricted_cpus (0.5) CPUs of the machine are out of reach, the allowed ones are in use "
          "(cpus_full, 85 %), more workers than CPUs with an input wait from warning_share (10 %), or on a CPU device "
          "more compute threads than CPUs.",
      .needs = "CPUs online, allowed and used, the effective loader.workers and cpu.threads, step times",
      .proposes = "more CPUs for the job; loader.workers and cpu.threads that fit",
      .evaluate = evaluate_cpu_restricted,
      .counts = Counts::kHostTime,
      .waits = "for a loader that may use too few CPUs",
      .explains = {Symptom::kWorkersBehind, Symptom::kWorkersCrowded, Symptom::kSlowSamples},
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
