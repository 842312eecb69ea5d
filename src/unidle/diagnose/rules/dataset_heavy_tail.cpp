#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/wait_for_batch.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// False when only the first epoch had slow samples: a program that keeps its results has such a tail.
bool still_there(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (signals.late_sample_s && *signals.late_sample_s < policy.tail_mean * *signals.samples->p50_s) {
    return false;
  }
  const double epochs = context.epochs.value_or(0);
  if (!signals.late_input_s || epochs <= 1 || signals.wall_s <= 0) {
    return true;
  }
  return *signals.late_input_s / signals.wall_s >= *context.steady_input * (1 - 1 / epochs) / 2;
}

/// Mean cost of a sample. Standing ready for a CPU is none. Nor is waiting for another thread that stands ready, which
/// looks like waiting for a disk: only CPU time is certain.
double mean_cost_s(const Context& context, bool only_cpu) {
  const SampleFacts& samples = *context.signals.samples;
  const double made_s = samples.total_s * (1 - context.work_delayed.value_or(0));
  const double cost_s = only_cpu ? std::min(made_s, samples.cpu_s.value_or(made_s)) : made_s;
  return cost_s / static_cast<double>(samples.count);
}

Evaluation evaluate_dataset_heavy_tail(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.samples || !signals.samples->p50_s || !signals.samples->p99_s || signals.samples->count < 1) {
    return Missing{"how the costs of samples are spread"};
  }
  if (!signals.samples->run_delay_s && detail::cpus_full(context, policy).value_or(false)) {
    return Missing{"whether slow samples only waited for a CPU, because the CPUs were full"};
  }
  if (!context.steady_input) {
    return Missing{context.no_steps};
  }
  const double p50_s = *signals.samples->p50_s;
  const double p99_s = *signals.samples->p99_s;
  const bool told = context.work_delayed.value_or(0) < policy.mostly;
  const double mean_s = mean_cost_s(context, !told);
  const bool wide = p99_s >= policy.tail_ratio * p50_s && p99_s >= policy.slow_sample_s;
  const bool tail = wide && mean_s >= policy.tail_mean * p50_s;
  if (!told && wide && !tail && mean_cost_s(context, false) >= policy.tail_mean * p50_s) {
    return Missing{"whether slow samples only waited for a CPU, because the CPUs were full"};
  }
  const double share = tail ? detail::wait_for_samples(context) * (1 - p50_s / mean_s) : 0;
  if (!tail || !still_there(context, policy) || share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::place_of_samples(signals);
  finding.evidence = {
      context.say("half of the samples cost less than {}, one in a hundred more than {}", format_seconds(p50_s),
                  format_seconds(p99_s)),
      context.say("slow samples make up {} of all sample work, and the batch that holds one waits for it",
                  format_share(1 - p50_s / mean_s)),
      context.say("{} of each step is waiting for input ({} of the wall time)", format_share(signals.step->input),
                  format_share(*context.input)),
  };
  if (context.workers.value_or(0) > 0) {
    finding.fixes.push_back(detail::make_fix(context, "loader.prefetch_factor", policy.deep_prefetch,
                                             "keep more batches ready, so that a slow one is made in time"));
  }
  return finding;
}

}  // namespace

const Rule& dataset_heavy_tail() {
  static const Rule kRule{
      .id = "dataset-heavy-tail",
      .verdict = Verdict::kInputBound,
      .title = "A few slow samples stall whole batches",
      .topic = "sample spread",
      .explanation =
          "Most samples are cheap and a few cost many times as much: a huge picture, a long file, a retry. A loader "
          "that works by batches keeps the whole batch back until its slowest sample is there.",
      .thresholds =
          "The 99th percentile at least tail_ratio (8) times the median and slow_sample_s (200 us), the mean at least "
          "tail_mean (1.3) times the median, also after the first pass; the tail's part of the input wait from "
          "warning_share (10 %) of the wall time. The time in which a thread waited for a CPU does not count. Where "
          "that is most (mostly, 50 %) of what samples take, only their CPU time counts, and where it was not "
          "measured and the CPUs are full (cpus_full, 85 %), nothing is said.",
      .needs = "the spread of sample costs, step times with the wait for input",
      .proposes = "treat the few apart: sort or bucket by size, prepare them before; loader.prefetch_factor",
      .evaluate = evaluate_dataset_heavy_tail,
      .counts = Counts::kHostTime,
      .waits = "for a few slow samples",
      .explains = {Symptom::kBatchesInBursts, Symptom::kWorkersBehind},
      .about_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
