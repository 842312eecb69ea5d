#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// Nothing measures what it costs that other processes use some of the CPUs.
Finding beside_others(const Context& context, std::int64_t threads) {
  Finding finding;
  finding.severity = Severity::kInfo;
  finding.where = detail::where_set(context, "cpu.threads");
  finding.evidence = {
      context.say("torch computes with {} threads, and other processes took {} of the {} CPUs",
                  std::llround(*context.cpu_threads), format_number(*context.cpus_taken), format_number(*context.cpus)),
      context.say("each operation waits until the last of its threads has got a CPU; how much that costs was not "
                  "measured"),
  };
  finding.fixes.push_back(detail::make_fix(context, "cpu.threads", threads,
                                           "as many threads as other processes leave CPUs, while they run"));
  return finding;
}

Evaluation evaluate_threads_oversubscribed(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.trainers) {
    return Missing{context.say("training steps (none were seen)")};
  }
  const auto processes = std::max(1.0, std::round(*signals.trainers));
  if (!context.on_cpu) {
    return Nothing{};
  }
  if (!context.cpus || !context.cpu_threads || !context.compute) {
    return Missing{"the CPUs that the run may use, and its threads"};
  }
  const double running = processes * *context.cpu_threads;
  const double cpus = *context.cpus;
  if (*context.cpu_threads < 2 || *context.compute < policy.warning_share) {
    return Nothing{};
  }
  if (running < policy.oversubscribed * cpus) {
    const auto threads = threads_beside_others(context, policy);
    return threads ? Evaluation(beside_others(context, *threads)) : Nothing{};
  }
  constexpr double kAsleep = 0.3;  // ten threads on two CPUs used 0.5 of them, a program that waits 0.04
  if (processes < 2 && (!signals.cpus_used || *signals.cpus_used < kAsleep * cpus)) {
    return Nothing{};
  }
  const double share = *context.compute * (1 - cpus / running);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.speedup_bound.reset();  // threads that wait in busy loops can cost more
  finding.severity = processes < 2 ? Severity::kWarning : finding.severity;  // small operations use one thread
  finding.where = detail::where_set(context, "cpu.threads");
  finding.evidence = {
      processes < 2 ? context.say("torch computes with {} threads on {} CPUs", std::llround(*context.cpu_threads),
                                  format_number(cpus))
                    : context.say("{} processes train at the same time with {} threads each, on {} CPUs",
                                  format_number(processes), format_number(*context.cpu_threads), format_number(cpus)),
      context.say("each operation waits until the last of its threads has got a CPU; how much that costs was not "
                  "measured"),
  };
  const auto each = static_cast<std::int64_t>(std::max(1.0, std::floor(cpus / processes)));
  finding.fixes.push_back(detail::make_fix(
      context, "cpu.threads", each,
      processes < 2 ? "use as many threads as there are CPUs, which is torch's default"
                    : "divide the CPUs among the processes (OMP_NUM_THREADS, or torch.set_num_threads in each)"));
  return finding;
}

}  // namespace

const Rule& threads_oversubscribed() {
  static const Rule kRule{
      .id = "threads-oversubscribed",
      .verdict = Verdict::kComputeBound,
      .title = "The run computes with more threads than there are CPUs",
      .topic = "threads per process",
      .explanation =
          "By default, torch computes in each process with one thread for each CPU that the process may use. Several "
          "such processes (torch.multiprocessing, mp.spawn) take turns on the same CPUs, and the threads of one "
          "operation wait for each other in busy loops. torchrun sets OMP_NUM_THREADS=1 for that reason. On two CPUs, "
          "two processes took 49 and 89 s with two threads each, and 13 s with one thread each (mnist_hogwild, torch "
          "2.11). One process that asks for more threads than CPUs loses in the same way: ten threads on two CPUs took "
          "75 s, and two took 36 s (pytorch-forecasting, ar.py). Threads that share the CPUs with other processes lose "
          "as "
          "well: beside one busy process, one thread was 1.3 to 4.7 times as fast as two (four small models).",
      .thresholds =
          "The processes that train at the same time compute with at least two threads each, and with at least "
          "oversubscribed (1.5) threads per CPU in all. Share = forward and backward pass x (1 - CPUs / threads), from "
          "warning_share (10 %) of the wall time; critical from critical_share (30 %), and for one process always a "
          "warning. No bound is given: waiting in busy loops can cost more. One process with fewer threads is a hint, "
          "if other processes leave it fewer CPUs than it has threads.",
      .needs = "how many processes train, the effective cpu.threads, the CPUs that the run may use, step times",
      .proposes = "cpu.threads",
      .evaluate = evaluate_threads_oversubscribed,
      .counts = Counts::kHostTime,
      .hint_title = "The run computes with more threads than other processes leave CPUs",
      .sentence = "Your run computes with more threads than it has CPUs, so that they take turns",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
