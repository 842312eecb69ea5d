#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

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

/// In words, when an affinity mask keeps the training process to fewer CPUs than were there before somebody set it.
std::optional<std::string> mask_in_words(const Context& context) {
  if (!context.signals.cpus_at_start) {
    return std::nullopt;
  }
  return context.say(
      "an affinity mask keeps the run to {} of {} CPUs: the launch command or the program set it, not a cgroup or the "
      "job's limits",
      format_number(*context.cpus), format_number(*context.signals.cpus_at_start));
}

void add_limits(const Context& context, Finding& finding, double allowed) {
  const Signals& signals = context.signals;
  if (allowed < *context.cpus) {
    finding.evidence.push_back(
        context.say("the loader's workers may use {} of the job's {} CPUs by their affinity masks",
                    format_number(allowed), format_number(*context.cpus)));
  } else if (auto mask = mask_in_words(context)) {
    finding.evidence.push_back(std::move(*mask));
  } else {
    finding.evidence.push_back(
        context.say("the job may use {} of this machine's {} CPUs (affinity mask and cgroup quota together)",
                    format_number(allowed), format_number(*signals.cpus_online)));
  }
}

knobs::Change wider_mask(const Context& context) {
  return detail::code_fix(
      context, "cpu.threads",
      "start the training without the mask (taskset, numactl, os.sched_setaffinity), or with one that has more CPUs");
}

/// What keeps the step to fewer threads than it has CPUs; nothing when nobody asked for so few.
struct FewThreads {
  std::string evidence;
  std::optional<std::string> where;
  knobs::Change fix;
};

std::optional<FewThreads> asked_for(const Context& context, double wanted) {
  const auto found = context.signals.settings.find("cpu.threads");
  if (found == context.signals.settings.end() || !found->second.effective) {
    return std::nullopt;
  }
  const account::KnobReading& threads = found->second;
  const auto more = static_cast<std::int64_t>(wanted);
  if (!threads.effective_at.empty()) {
    return FewThreads{
        context.say("a call of torch.set_num_threads sets {}", *threads.effective), threads.effective_at,
        detail::make_fix(context, "cpu.threads", more, "leave the call out, or pass it the CPUs that may be used")};
  }
  for (const auto& [name, value] : threads.environment) {
    if (value == *threads.effective) {
      return FewThreads{context.say("the variable {} is {}", name, value), std::nullopt,
                        detail::make_fix(context, "cpu.threads", more,
                                         context.say("leave the variable {} out, or set it to {}", name, more))};
    }
  }
  return std::nullopt;
}

/// True when the operations of forward and backward pass are long enough to be divided among threads.
bool can_be_divided(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const double passes_s = signals.step->compute * signals.step_s.value_or(0) / signals.micro_batches.value_or(1);
  const auto tensors = signals.optimizer ? signals.optimizer->tensors : std::nullopt;
  return passes_s >= policy.divided_tensor_s * static_cast<double>(std::max<std::int64_t>(1, tensors.value_or(1)));
}

/// A step that computes on the CPU with fewer threads than CPUs, and leaves the others unused.
Evaluation evaluate_few_threads(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!context.on_cpu || !context.compute || !context.cpu_threads || !can_be_divided(context, policy)) {
    return Nothing{};
  }
  const double ranks = std::max<double>(1, static_cast<double>(signals.ranks.size()));
  const double reach = signals.cpus_at_start.value_or(*context.cpus) / ranks;
  const double threads = std::min(*context.cpu_threads, *context.cpus);
  const double unused = reach - *signals.cpus_used / ranks;
  // Half of the CPUs may be the second threads of cores, which compute hardly more.
  if (unused < policy.free_cpus || (threads > 1 && 2 * threads >= reach) ||
      !detail::run_fills(context, threads * ranks, policy)) {
    return Nothing{};
  }
  const double wanted = std::min(std::floor(reach), threads + std::floor(unused + 1 - policy.free_cpus));
  const double share = *context.compute * (1 - threads / wanted);
  if (wanted <= threads || share < policy.warning_share) {
    return Nothing{};
  }
  auto mask = mask_in_words(context);
  auto few = mask ? std::optional(FewThreads{std::move(*mask), std::nullopt, wider_mask(context)})
                  : asked_for(context, wanted);
  if (!few) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.verdict = Verdict::kComputeBound;
  finding.where = std::move(few->where);
  finding.evidence = {
      std::move(few->evidence),
      context.say("the step computes on {} of {} CPUs, and the run keeps {} of them busy", format_number(threads),
                  format_number(reach), format_number(*signals.cpus_used / ranks)),
      context.say("forward and backward take {} of the wall time", format_share(*context.compute))};
  finding.fixes.push_back(std::move(few->fix));
  return finding;
}

Evaluation evaluate_cpu_restricted(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!context.cpus || !signals.cpus_online) {
    return Missing{"the CPUs of this machine and those that the run may use"};
  }
  const double cpus = cpus_of_loader(context);
  const bool restricted = *signals.cpus_online >= cpus + policy.restricted_cpus;
  if (!restricted && !context.on_cpu) {
    return Nothing{};
  }
  if (!signals.cpus_used) {
    return Missing{"the CPUs that the run may use and did use"};
  }
  if (!context.steady_input) {
    return Missing{context.no_steps};
  }
  const auto demand =
      restricted && detail::run_fills(context, cpus, policy) ? demand_of(context, policy) : std::nullopt;
  if (!demand || demand->share < policy.warning_share) {
    return evaluate_few_threads(context, policy);
  }
  Finding finding = detail::of_share(demand->share, policy);
  add_limits(context, finding, demand->allowed);
  finding.evidence.push_back(context.say("it would use {} CPUs", format_number(demand->cpus)));
  finding.evidence.push_back(detail::cpu_use_in_words(context, policy));
  if (signals.cpus_at_start && demand->allowed == *context.cpus) {
    finding.fixes.push_back(wider_mask(context));
  }
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
      .title = "The run is kept to fewer CPUs than it could use",
      .topic = "CPU limits",
      .explanation =
          "An affinity mask, a container's CPU quota or the scheduler's --cpus-per-task gives the job fewer CPUs than "
          "the machine has and than its workers or threads would use. The program sees all CPUs, starts as many "
          "workers, and they take turns on a few. A program or its launcher may also narrow it after the start, and "
          "its workers inherit that. Or it computes with fewer threads than it has CPUs, because a variable or a call "
          "says so, and the others stay unused. The bound assumes that forward and backward pass can be divided among "
          "all "
          "unused CPUs.",
      .thresholds =
          "At least restricted_cpus (0.5) CPUs of the machine are out of reach and the allowed ones are in use "
          "(cpus_full, 85 %), with more workers than CPUs and an input wait from warning_share (10 %), or, on a CPU "
          "device, with more compute threads than CPUs. Or, on a CPU device, the run leaves at least free_cpus (0.75) "
          "CPUs unused, because a mask, torch.set_num_threads or a variable gives it one compute thread, or fewer than "
          "one for every two CPUs; not when a parameter tensor takes less than divided_tensor_s (100 us) of forward "
          "and backward pass.",
      .needs = "CPUs online, allowed and used, the effective loader.workers and cpu.threads, step times",
      .proposes = "more CPUs for the job, or a wider mask; loader.workers and cpu.threads that fit",
      .evaluate = evaluate_cpu_restricted,
      .counts = Counts::kHostTime,
      .waits = "for a loader that is kept to too few CPUs",
      .explains = {Symptom::kWorkersBehind, Symptom::kWorkersCrowded, Symptom::kSlowSamples},
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
