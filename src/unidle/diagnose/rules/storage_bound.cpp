#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/wait_for_batch.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_storage_bound(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!context.work_on_cpu) {
    return Missing{"how much of the sample work is waiting"};
  }
  if (!signals.disk_wait && !signals.read_bytes_per_s) {
    return Missing{"disk waits and reads from storage"};
  }
  if (!context.steady_input) {
    return Missing{context.no_steps};
  }
  const double waiting = (1 - context.work_delayed.value_or(0)) * (1 - *context.work_on_cpu);
  const double share = detail::wait_for_samples(context) * waiting;
  const double workers = std::max<double>(1, static_cast<double>(context.workers.value_or(1)));
  const bool disk = signals.disk_wait.value_or(0) >= policy.disk_wait * workers ||
                    signals.read_bytes_per_s.value_or(0) >= policy.disk_read_bytes_per_s;
  if (*context.work_on_cpu > policy.on_cpu || !disk || share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::place_of_samples(signals);
  finding.evidence.push_back(
      context.say("samples spend {} of their time waiting, not on a CPU", format_share(waiting)));
  if (signals.disk_wait) {
    finding.evidence.push_back(
        context.say("on average {} processes wait for the disk", format_number(*signals.disk_wait)));
  }
  if (signals.read_bytes_per_s) {
    finding.evidence.push_back(
        context.say("{}/s are read from storage", detail::format_noted_bytes(*signals.read_bytes_per_s)));
  }
  const bool kept = detail::effective_on(context, "cache.features") == true;
  if (!kept && (!signals.loader || !signals.loader->of_package())) {  // a loader of our package cannot keep samples
    finding.fixes.push_back(detail::keep_samples_fix(
        context, "read each sample once: keep it in memory, or copy the data to a local disk first"));
  }
  return finding;
}

}  // namespace

const Rule& storage_bound() {
  static const Rule kRule{
      .id = "storage-bound",
      .verdict = Verdict::kInputBound,
      .title = "Workers wait for storage",
      .topic = "storage",
      .explanation =
          "The workers have little to do and wait for the disk or the network file system most of the time. More CPU "
          "does not help them; larger sequential reads, a local copy, or keeping the data in memory does.",
      .thresholds =
          "Samples are on a CPU for at most on_cpu (50 %) of their time, not counting the time in which they waited "
          "for a CPU; at least disk_wait (0.25) processes a worker in disk wait or disk_read_bytes_per_s (1 MB/s) "
          "read; that part of the input wait from warning_share (10 %) of the wall time.",
      .needs =
          "CPU time and wall time of samples, processes in disk wait or bytes read from storage, step times with the "
          "wait for input",
      .proposes = "copy the data to a local disk, keep it in memory (cache.features), or read larger pieces",
      .evaluate = evaluate_storage_bound,
      .counts = Counts::kHostTime,
      .waits = "for storage",
      .explains = {Symptom::kWorkersBehind, Symptom::kSlowSamples, Symptom::kBatchesInBursts, Symptom::kNoBatch},
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
