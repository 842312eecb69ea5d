#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_samples_take_cpus(const Context& context, const Policy& policy) {
  if (!context.on_cpu || context.workers.value_or(0) < 1) {
    return Nothing{};  // elsewhere the device waits for samples, and others say so
  }
  const Signals& signals = context.signals;
  if (!signals.cpus_used || !context.cpus) {
    return Missing{"how busy the CPUs are"};
  }
  const auto each_s = signals.samples ? signals.samples->mean_cpu_s() : std::nullopt;
  if (!each_s || !signals.samples_per_s) {
    return Missing{"the CPU time of one sample"};
  }
  // A sample may be trained several times: what all samples took is the most.
  const double used_s = std::min(*each_s * *signals.samples_per_s * signals.time.train, *signals.samples->cpu_s);
  const double used = signals.time.train > 0 ? used_s / signals.time.train / *context.cpus : 0;
  const bool full = *signals.cpus_used >= policy.cpus_full * *context.cpus;
  if (!full || used < policy.sample_cpus || !context.train) {
    return Nothing{};
  }
  Finding finding = detail::of_share(used * *context.train, policy);
  finding.severity = Severity::kWarning;
  finding.speedup_bound.reset();  // threads that wait for each other lose more than the CPUs that are taken
  finding.evidence = {
      context.say("workers spend {} of CPU time on each sample, and take {} of the CPUs in all",
                  format_seconds(*each_s), format_share(used)),
      context.say("the run keeps all CPUs busy, and the step computes on the same ones"),
  };
  if (const auto hot = detail::hot_sample_function(signals)) {
    detail::add_hot_function(context, *hot, finding);
  }
  if (!finding.where) {
    finding.where = detail::place_of_samples(signals);
  }
  if (context.epochs.value_or(0) > policy.min_epochs && detail::samples_can_be_kept(context) &&
      !detail::samples_differ(signals)) {
    finding.fixes.push_back(detail::keep_samples_fix(context, "keep what the first epoch computed for the later ones"));
  }
  return finding;
}

}  // namespace

const Rule& samples_take_cpus() {
  static const Rule kRule{
      .id = "samples-take-cpus",
      .verdict = Verdict::kComputeBound,
      .title = "Making samples takes CPUs from the step",
      .topic = "CPUs for samples",
      .explanation =
          "A model that trains on CPUs shares them with the workers of its loader. Where these have much to do, the "
          "step computes more slowly, although it hardly waits for a batch. Cheaper samples give the CPUs back: "
          "results that are kept, smaller files, less work for each sample, packages that are not imported again in "
          "every epoch.",
      .thresholds =
          "Training on CPUs that the run itself fills (cpus_full, 85 %), with workers whose samples take at least "
          "sample_cpus (15 %) of them. Always a warning. The share is that part of the training time. No bound is "
          "given, because the threads of a step wait for each other: a step whose samples took 31 % of two CPUs became "
          "1.96x as fast without them.",
      .needs = "CPU time of the samples, samples/s, the workers in effect, how busy the CPUs are",
      .proposes = "do less work for each sample (keep results, store them smaller or decoded, import packages once)",
      .evaluate = evaluate_samples_take_cpus,
      .counts = Counts::kHostTime,
      .sentence = "Your workers take {share} of the CPUs on which the model trains",
      .costly_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
