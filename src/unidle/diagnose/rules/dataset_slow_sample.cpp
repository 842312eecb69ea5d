#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/wait_for_batch.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// CPU seconds of loader work per step.
std::optional<double> loader_cpu_s(const Context& context) {
  return context.work_s ? std::optional(*context.work_s * context.work_on_cpu.value_or(1)) : std::nullopt;
}

/// What workers could reach, and what they could reach if no other process used the CPUs.
void add_best_step(const Context& context, double best_s, Finding& finding) {
  constexpr double kOfOthers = 0.25;  // CPUs
  constexpr double kShorter = 0.9;
  const double usable = usable_cpus(context);
  const bool shared = usable < *context.cpus - kOfOthers;
  const std::string rest = format_seconds(*context.rest_s);
  finding.evidence.push_back(
      shared ? context.say("even if the {} CPUs that other processes leave made samples, a step would take {}; without "
                           "loading it takes {}",
                           format_number(usable), format_seconds(best_s), rest)
             : context.say("even if all {} CPUs made samples, a step would take {}; without loading it takes {}",
                           format_number(*context.cpus), format_seconds(best_s), rest));
  const auto alone_s = overlapped_step_s(context, *loader_cpu_s(context), *context.cpus);
  if (shared && alone_s && *alone_s < kShorter * best_s) {
    finding.evidence.push_back(context.say("with all {} CPUs to itself, workers could shorten it to {}",
                                           format_number(*context.cpus), format_seconds(*alone_s)));
  }
}

void add_cost(const Context& context, Finding& finding) {
  const std::string cost = format_seconds(*context.signals.sample_s);
  if (const auto hot = detail::hot_sample_function(context.signals)) {
    finding.evidence.push_back(
        context.say("one sample costs {} on one thread, {} of it in {}", cost, format_share(hot->share), hot->text()));
    finding.where = detail::place(hot->where);
  } else {
    finding.evidence.push_back(context.say("one sample costs {} on one thread", cost));
  }
  if (!finding.where) {
    finding.where = detail::place_of_samples(context.signals);
  }
}

/// What is kept has to be made in the first epoch.
void bound_of_kept(const Context& context, Finding& finding) {
  if (const double epochs = context.epochs.value_or(0); epochs > 1) {
    const double kept = *finding.share * detail::part_to_keep(context.signals);
    finding.speedup_bound = amdahl(kept * (1 - 1 / epochs));
    finding.later_bound = amdahl(kept / context.train.value_or(1));
  }
}

Evaluation evaluate_dataset_slow_sample(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.sample_s) {
    return Missing{"what one sample costs"};
  }
  if (!context.steady_input) {
    return Missing{context.no_steps};
  }
  if (*signals.sample_s < policy.slow_sample_s || *context.steady_input < policy.warning_share) {
    return Nothing{};
  }
  const auto work_s = loader_cpu_s(context);
  const auto best_s = work_s ? overlapped_step_s(context, *work_s) : std::nullopt;
  if (!best_s || !context.rest_s) {
    return Missing{"the CPUs that the run may use, and the loader's work in a step"};
  }
  const double lost = std::max(0.0, *best_s - *context.rest_s) / *signals.step_s * context.train.value_or(1);
  const bool waits_elsewhere = context.work_on_cpu.value_or(1) < policy.on_cpu;
  if (std::min(lost, *context.steady_input) < policy.warning_share || waits_elsewhere) {
    return Nothing{};
  }
  // Cheaper samples can save the whole wait for them, not only what workers leave of it.
  const double share = detail::wait_for_samples(context);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  add_cost(context, finding);
  detail::add_stages(context, finding);
  add_best_step(context, *best_s, finding);
  if (detail::effective_on(context, "cache.features") == true) {
    return finding;  // everything that can be kept is kept
  }
  const bool one_pass =
      signals.outcome == Outcome::kCompleted && context.epochs && *context.epochs <= policy.min_epochs;
  if (detail::samples_can_be_kept(context) && one_pass) {
    finding.evidence.push_back("the run makes one pass over the data: samples that are kept serve later runs only");
  } else if (detail::samples_can_be_kept(context)) {
    finding.fixes.push_back(
        detail::keep_samples_fix(context, "keep what does not change from epoch to epoch, or make the sample cheaper"));
    bound_of_kept(context, finding);
  } else if (signals.loader && signals.loader->of_package()) {
    finding.evidence.push_back(
        "loaders of unidle.data keep no samples: they can only be made cheaper (smaller files, scaled_decode of "
        "unidle.data.images)");
  } else if (signals.loader && signals.loader->map_style == false) {
    finding.evidence.push_back(
        "samples come from an iterable data set: unidle cannot keep them, but the program can, where they are the "
        "same in each epoch and fit into memory");
  } else {
    const bool made_again = signals.samples && signals.samples->compared_samples > 0;
    finding.evidence.push_back(
        made_again || !signals.loader || signals.loader->draws.empty()
            ? context.say("samples differ in each epoch: they cannot be kept, only made cheaper")
            : context.say("{} draws random numbers: samples cannot be kept, only made cheaper", signals.loader->draws));
  }
  return finding;
}

}  // namespace

const Rule& dataset_slow_sample() {
  static const Rule kRule{
      .id = "dataset-slow-sample",
      .verdict = Verdict::kInputBound,
      .title = "One sample costs more than this machine can make fast enough",
      .topic = "sample cost",
      .explanation =
          "However many workers share the CPUs of this machine, they cannot make samples as fast as the step uses "
          "them, because each costs too much CPU time. Only less work for a sample helps: a cheaper function, smaller "
          "inputs, results that are kept, or more CPUs. On a CPU that also trains, the CPU time of the step counts "
          "too.",
      .thresholds =
          "Samples from slow_sample_s (200 us); what is left of the wait with all CPUs at work from warning_share (10 "
          "%) of the wall time. The share is the whole wait, which cheaper samples can save; critical from "
          "critical_share (30 %). Nothing is said when samples mostly wait for something else than a CPU (on_cpu, 50 "
          "%).",
      .needs =
          "the cost of one sample, step times with the wait for input, the CPUs that the run may use; names the "
          "function where stack samples show it",
      .proposes = "do less work for each sample",
      .evaluate = evaluate_dataset_slow_sample,
      .counts = Counts::kHostTime,
      .waits = "for samples that the CPUs cannot make fast enough",
      .shows = Symptom::kSlowSamples,
      .explains = {Symptom::kNoBatch, Symptom::kNoUseOfWorkers},
      .about_samples = true,
      .costly_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
