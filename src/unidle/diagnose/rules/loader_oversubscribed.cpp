#include <algorithm>
#include <cmath>
#include <utility>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// Runnable threads per worker. Every process has small idle pools, so only large ones count.
double threads_of_worker(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.threads || !signals.processes || *signals.processes < 2 || !context.cpus) {
    return 1;
  }
  const double each = *signals.threads / *signals.processes;
  return each >= std::max(policy.many_threads, 1.5 * *context.cpus) ? each : 1;
}

std::int64_t fitting_workers(const Context& context) {
  return static_cast<std::int64_t>(std::max(1.0, std::floor(*context.cpus) - (context.on_cpu ? 1 : 0)));
}

/// Whether so many workers would need longer for a batch than a step takes now. Then slow samples are the cause.
bool are_too_few(const Context& context, double workers) {
  constexpr double kSlower = 1.1;
  const Signals& signals = context.signals;
  const auto each_s = signals.samples ? signals.samples->mean_cpu_s() : std::nullopt;
  if (!each_s || !signals.batch_samples) {
    return false;
  }
  const double cpu_s = *each_s * static_cast<double>(*signals.batch_samples) * signals.micro_batches.value_or(1);
  return signals.step_s && cpu_s > kSlower * workers * *signals.step_s;
}

/// Fires when the loader itself lacks CPUs, or when its workers take them from the step.
std::optional<Finding> judge(const Context& context, const Policy& policy, double workers, double running) {
  const Signals& signals = context.signals;
  const double cpus = *context.cpus;
  if (workers == static_cast<double>(*context.workers) &&
      are_too_few(context, static_cast<double>(fitting_workers(context)))) {
    return std::nullopt;
  }
  if (workers > cpus && running >= policy.oversubscribed * cpus && *context.steady_input >= policy.warning_share) {
    const double starved = context.work_delayed.value_or(1 - cpus / running);
    return detail::of_share(*context.steady_input * std::clamp(starved, 0.0, 1.0), policy);
  }
  const double with_step = running + context.cpu_threads.value_or(1) * signals.step->compute;
  if (context.on_cpu && workers > 1 && running > 1 && with_step >= policy.oversubscribed * cpus &&
      context.compute.value_or(0) >= policy.critical_share) {
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.verdict = Verdict::kComputeBound;
    finding.evidence.push_back(
        context.say("the step computes on the same CPUs with {} threads; how much it loses was not measured",
                    format_number(context.cpu_threads.value_or(1))));
    return finding;
  }
  return std::nullopt;
}

/// Seconds that the samples of a step take on one thread, without putting batches together; 0 when not measured.
double samples_of_step_s(const Context& context) {
  const Signals& signals = context.signals;
  return signals.samples && signals.samples->count > 0 && signals.batch_samples
             ? signals.samples->total_s / static_cast<double>(signals.samples->count) *
                   static_cast<double>(*signals.batch_samples) * signals.micro_batches.value_or(1) *
                   (1 - context.work_delayed.value_or(0))
             : 0;
}

/// The most that model and optimiser can lose to workers on the same CPUs, as a share of the wall time: workers may use
/// all CPU time but that of the training thread, which waits for input in the rest.
double most_lost_by_step(const Context& context) {
  const Signals& signals = context.signals;
  if (!context.on_cpu || !signals.cpus_used || !signals.step) {
    return 0;
  }
  const double of_workers =
      std::min(static_cast<double>(*context.workers), *signals.cpus_used - (1 - signals.step->input));
  const double step = context.compute.value_or(0) + context.optimizer.value_or(0);
  return step * std::clamp(of_workers / *context.cpus, 0.0, 1.0);
}

/// What a step loses to workers that cost more than they bring: it waits longer for a batch than one thread needs to
/// make it. Waits of samples for storage, which workers hide, count as work.
std::optional<Finding> costs_more(const Context& context, const Policy& policy) {
  if (!context.work_s || !context.input_s || !context.rest_s || !context.steady_input || *context.steady_input <= 0) {
    return std::nullopt;
  }
  if (*context.steady_input < context.respawn) {
    return std::nullopt;  // mostly waits for workers that start: keeping them is another cause's fix
  }
  const double waits_s = *context.input_s * *context.steady_input / *context.input;
  const double work_s = *context.work_s;
  const double step_s = waits_s + *context.rest_s;
  if (step_s < policy.min_gain_without_workers * (*context.rest_s + work_s)) {
    return std::nullopt;
  }
  // A worker puts its batches together in shared memory, which the training process need not do, and has to be started.
  const double share = *context.input * (1 - std::min(work_s, samples_of_step_s(context)) / *context.input_s);
  if (share < policy.warning_share) {
    return std::nullopt;
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::where_loader(context, "loader.workers");
  finding.evidence.push_back(context.say("{} workers share {} CPUs", *context.workers, format_number(*context.cpus)));
  if (const double more = most_lost_by_step(context); more >= policy.warning_share) {
    finding.speedup_bound = amdahl(share + more);
    finding.evidence.push_back(
        context.say("the step computes on the same CPUs with {} threads; how much it loses was not measured",
                    format_number(context.cpu_threads.value_or(1))));
  }
  finding.evidence.push_back(
      context.say("a step waits {} for its batch, which one thread makes in {}: sending it from a worker and starting "
                  "workers cost more than they bring",
                  format_seconds(waits_s), format_seconds(work_s)));
  finding.fixes.push_back(detail::make_fix(context, "loader.workers", std::int64_t{0},
                                           "make batches in the training process: they are cheap"));
  return finding;
}

void propose_fewer(const Context& context, Finding& finding) {
  const std::int64_t fitting = fitting_workers(context);
  if (*context.workers > fitting && !are_too_few(context, static_cast<double>(fitting))) {
    finding.fixes.push_back(
        detail::make_fix(context, "loader.workers", fitting, "no more workers than CPUs that are free for them"));
  }
}

/// A hint about more workers than any loader can use; `otherwise` when there are not that many.
Evaluation hint_at_many(const Context& context, const Policy& policy, const Evaluation& otherwise) {
  if (!context.cpus || static_cast<double>(*context.workers) <= policy.workers_per_cpu * *context.cpus) {
    return otherwise;
  }
  Finding finding;
  finding.severity = Severity::kInfo;
  finding.where = detail::where_loader(context, "loader.workers");
  finding.evidence = {context.say("{} workers share {} CPUs", *context.workers, format_number(*context.cpus)),
                      context.say("more than {} workers per CPU do not help, and each costs its start and its memory",
                                  format_number(policy.workers_per_cpu))};
  propose_fewer(context, finding);
  return finding;
}

Evaluation evaluate_loader_oversubscribed(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!context.workers) {
    return Missing{"the loader's worker count in the live program"};
  }
  if (*context.workers < 1) {
    return Nothing{};
  }
  if (!context.cpus || !signals.cpus_used) {
    return Missing{"the CPUs that the run may use and did use"};
  }
  if (context.crowded_out) {
    return hint_at_many(context, policy, Missing{"the workers' pace while no other process takes the CPUs"});
  }
  if (auto finding = costs_more(context, policy)) {
    return *finding;
  }
  if (!detail::run_fills(context, *context.cpus, policy)) {
    return hint_at_many(context, policy, Nothing{});
  }
  if (!signals.loader_busy) {
    return hint_at_many(context, policy, Missing{"how busy the loader's workers are"});
  }
  if (!context.steady_input) {
    return Missing{context.no_steps};
  }
  const double threads = threads_of_worker(context, policy);
  const double workers = static_cast<double>(*context.workers) * threads;
  auto finding = judge(context, policy, workers, workers * *signals.loader_busy);
  if (!finding) {
    return hint_at_many(context, policy, Nothing{});
  }
  finding->where = detail::where_loader(context, "loader.workers");
  std::string count = threads > 1
                          ? context.say("{} workers with about {} threads each share {} CPUs", *context.workers,
                                        format_number(threads), format_number(*context.cpus))
                          : context.say("{} workers share {} CPUs", *context.workers, format_number(*context.cpus));
  finding->evidence.insert(finding->evidence.begin(), std::move(count));
  finding->evidence.push_back(detail::cpu_use_in_words(context, policy));
  finding->evidence.push_back(context.say("workers have work {} of the time", format_share(*signals.loader_busy)));
  if (threads > 1) {
    finding->fixes.push_back(detail::make_fix(context, "cpu.threads", 1,
                                              "one thread in each worker: cv2.setNumThreads(0), OMP_NUM_THREADS=1"));
  }
  propose_fewer(context, *finding);
  return *finding;
}

}  // namespace

const Rule& loader_oversubscribed() {
  static const Rule kRule{
      .id = "loader-oversubscribed",
      .verdict = Verdict::kInputBound,
      .title = "More loader processes and threads than CPUs",
      .topic = "loader threads",
      .explanation =
          "Workers beyond the CPUs that the job may use do not make samples faster: they take turns, throw each "
          "other's caches away and take the CPU from the training thread. The same happens when each worker starts a "
          "pool of threads of its own (OpenCV, OpenMP, BLAS).",
      .thresholds =
          "The workers that are at work (workers x busy share x threads; a pool counts from many_threads, 8 threads a "
          "process) are at least oversubscribed (1.5) times the CPUs, the run's own threads fill the CPUs (cpus_full, "
          "85 %), and the input wait is at least warning_share (10 %). On a CPU device also when compute takes "
          "critical_share (30 %) of the wall time and shares the CPUs with them: then a warning without a share. A "
          "hint where none of this holds and there are more than workers_per_cpu (4) workers to a CPU. A loader "
          "without workers is proposed where a step waits longer for its batch than one thread needs to make it, and a "
          "step without workers would be at least min_gain_without_workers (1.15) times as fast. Workers are not "
          "judged where other processes take the CPUs (crowded_out, 30 %).",
      .needs = "the effective loader.workers, how busy the workers are, CPUs allowed and used",
      .proposes = "loader.workers, cpu.threads",
      .evaluate = evaluate_loader_oversubscribed,
      .counts = Counts::kHostTime,
      .waits = "for workers that take turns on too few CPUs",
      .shows = Symptom::kWorkersCrowded,
      .explains = {Symptom::kSlowSamples, Symptom::kNoBatch, Symptom::kWorkersBehind, Symptom::kBatchesInBursts,
                   Symptom::kWorkersRestarted},
      .about_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
