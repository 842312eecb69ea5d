#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

constexpr const char* kKnob = "memory.keep_freed";

Evaluation evaluate_freed_memory_returned(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!context.on_cpu || detail::effective_on(context, kKnob).value_or(false)) {
    return Nothing{};  // tensors of a GPU have an allocator of their own
  }
  if (!signals.page_faults) {
    return Missing{"how often the process asks the system for memory while it trains (page faults)"};
  }
  if (!context.computing) {
    return Missing{context.no_computing};
  }
  const PageFaultFacts& faults = *signals.page_faults;
  const double of_faults_s = std::min(faults.system_s, faults.faults * policy.page_fault_s);
  const double of_run = std::min(1.0, *context.computing + context.validate.value_or(0));
  const double share = std::min(1.0, of_faults_s / faults.cpu_s) * of_run;
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  // While one thread waits for the kernel, the others may wait for that thread.
  constexpr double kMost = 0.9;
  finding.speedup_bound = amdahl(std::min(kMost, of_faults_s / faults.seconds) * of_run);
  finding.evidence = {
      context.say("the process has {} page faults a second: it returns memory to the system and fetches it again",
                  format_number(faults.faults / faults.seconds)),
      context.say("{} of its CPU time passes in the kernel",
                  format_share(std::min(1.0, faults.system_s / faults.cpu_s))),
  };
  finding.fixes.push_back(detail::make_fix(context, kKnob, true, "keep freed memory in the process"));
  return finding;
}

}  // namespace

const Rule& freed_memory_returned() {
  static const Rule kRule{
      .id = "freed-memory-returned",
      .verdict = Verdict::kOverheadBound,
      .title = "Memory of freed tensors goes back to the system and is fetched again",
      .topic = "memory of freed tensors",
      .explanation =
          "On a CPU, tensors come from the C library. glibc maps a large one on its own, unmaps it when it is freed, "
          "and returns the free end of its heap. In the next step the kernel zeroes the same memory again, page by "
          "page. glibc can keep it instead; so do jemalloc and tcmalloc, which PyTorch's tuning guide recommends. A "
          "graph network (Graph WaveNet, 207 nodes, batches of 64) trained 1.8 times as fast, on 2 CPUs.",
      .thresholds =
          "Training on CPUs. The time in the kernel counts, at most page_fault_s (2.5 us) for each page fault without "
          "I/O. The share is its part of the process's CPU time, times the share of computing and "
          "validation, from warning_share (10 %) of the wall time; critical from critical_share (30 %). The bound "
          "holds "
          "where only one thread at a time is in the kernel.",
      .needs = "page faults and CPU time of the training process, step times",
      .proposes = "memory.keep_freed",
      .evaluate = evaluate_freed_memory_returned,
      .counts = Counts::kHostTime,
      .sentence = "Your process spends {share} of the run on fetching memory that it had returned to the system",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
