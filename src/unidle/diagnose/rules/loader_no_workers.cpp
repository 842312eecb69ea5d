#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/detail/wait_for_batch.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

constexpr std::string_view kCheaperCollate =
    "make the collate function cheaper (work on whole arrays instead of single elements, or do its work once for each "
    "sample)";

/// The trace itself shows what the wait for input costs the device, even with few steps.
Evaluation input_by_timeline(const Context& context, const DeviceTimeline& timeline, const Policy& policy) {
  if (timeline.input < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_idle(context, policy, timeline.input);
  finding.evidence.emplace_back("the training thread makes the samples itself");
  detail::add_caveats(context, finding);
  finding.fixes.push_back(
      detail::make_fix(context, "loader.workers", std::nullopt, "prepare batches in workers while the step runs"));
  return finding;
}

/// Where workers would gain nothing: what takes most of the wait, and its place.
void add_cheaper_batches(const Context& context, const Policy& policy, bool anew, Finding& finding) {
  const Signals& signals = context.signals;
  std::string_view how = "do less work for each sample, or make whole batches at once";
  finding.where = detail::place_of_samples(signals);
  if (anew) {
    how = "make one iterator of the loader and keep it: only then can workers prepare batches";
    finding.where = detail::place(signals.loader->iterated_where);
  } else if (detail::waits_beside_samples(context, policy)) {
    how = "do less work for each batch outside of the data set: in the sampler, or around the loader";
    finding.where = detail::place(signals.loader ? signals.loader->where : "");
  } else if (detail::collate_share(signals) >= policy.mostly) {
    how = kCheaperCollate;
    finding.where = detail::place(signals.loader->collate_where);
  }
  finding.fixes.push_back(detail::code_fix(context, "loader.workers", how));
}

/// Where the collate function takes most of a batch: says so, and what else helps.
void lead_to_collate(const Context& context, const Policy& policy, Finding& finding) {
  if (detail::collate_share(context.signals) < policy.mostly || detail::waits_beside_samples(context, policy)) {
    return;
  }
  const LoaderFacts& loader = *context.signals.loader;
  finding.waits = context.say("for batches that {} ({}) puts together", loader.collate, loader.collate_where);
  if (finding.fixes.empty() || finding.fixes.front().in_code) {
    return;
  }
  const double gain = amdahl(*context.input * detail::collate_share(context.signals));
  knobs::Change cheaper = detail::code_fix(context, "loader.workers", kCheaperCollate);
  cheaper.reason = context.say("or {}, {}; one that costs nothing: at best {:.1f}x as fast", cheaper.reason,
                               loader.collate_where, gain);
  finding.fixes.push_back(std::move(cheaper));
}

Evaluation evaluate_loader_no_workers(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!context.workers) {
    return Missing{context.say("the loader's worker count in the live program")};
  }
  if (*context.workers > 0) {
    return Nothing{};
  }
  if (const DeviceTimeline* timeline = detail::only_timeline(context)) {
    return input_by_timeline(context, *timeline, policy);
  }
  if (!context.input) {
    return Missing{context.no_steps};
  }
  if (*context.input < policy.warning_share) {
    return Nothing{};
  }

  Finding finding = detail::of_share(*context.input, policy);
  finding.where = detail::where_loader(context, "loader.workers");
  const bool by_thread = signals.loader && signals.loader->by_thread == true;
  finding.evidence.push_back(by_thread ? context.say("one thread makes the samples and passes them on")
                                       : context.say("the training thread makes the samples itself"));
  finding.evidence.push_back(context.say("{} of each step is waiting for input", format_share(signals.step->input)));
  if (signals.sample_s && *signals.sample_s > 0) {
    finding.evidence.push_back(context.say("one sample costs {} on one thread", format_seconds(*signals.sample_s)));
  }
  constexpr std::string_view kHow = "prepare batches in workers while the step runs";
  const bool beside = detail::waits_beside_samples(context, policy);
  if (beside) {
    finding.evidence.push_back(context.say("making the samples of a batch takes {} of the wait for it",
                                           format_share(*detail::made_in_wait(context))));
  }
  if (context.input_s) {
    // Without workers the wait is the work, unless a separate thread works on during the step. The sampler's part of it
    // stays in the training thread.
    const double hidden_s = beside ? *context.input_s * *detail::made_in_wait(context) : *context.input_s;
    const double work_s = by_thread ? *signals.step_s : hidden_s;
    const std::int64_t workers = detail::workers_that_hide(context, work_s, policy);
    if (auto best = by_thread ? overlapped_step_s(context, work_s) : detail::step_with_workers(context, work_s)) {
      best = std::max(*best, work_s / static_cast<double>(workers));
      finding.speedup_bound = bound_of_run(context, *signals.step_s, *best);
      if (context.on_cpu && *best > *context.rest_s * (1 + 1e-6)) {
        finding.evidence.push_back(
            context.say("compute and loader share {} CPUs: with workers a step would take at least {} instead of {}",
                        format_number(*context.cpus), format_seconds(*best), format_seconds(*signals.step_s)));
      }
    }
    const bool anew = detail::iterates_for_each_batch(signals, policy);
    if (anew || *finding.speedup_bound < policy.min_bound) {
      finding.severity = std::min(finding.severity, Severity::kWarning);
      finding.speedup_bound.reset();
      if (context.crowded_out) {
        finding.severity = Severity::kInfo;
      } else {
        finding.speedup_bound = amdahl(*context.input);  // of batches that cost nothing
      }
      finding.shows = Symptom::kNoUseOfWorkers;
      finding.evidence.insert(finding.evidence.begin(), anew ? context.say("workers would be started for each batch")
                                                             : context.say("workers would gain nothing on these CPUs"));
      add_cheaper_batches(context, policy, anew, finding);
    } else {
      finding.fixes.push_back(detail::make_fix(context, "loader.workers", workers, kHow));
    }
  } else {
    finding.fixes.push_back(detail::make_fix(context, "loader.workers", std::nullopt, kHow));
  }
  detail::add_stages(context, finding);
  detail::add_collate(context, policy, finding);
  lead_to_collate(context, policy, finding);
  if (signals.epochs.value_or(0) > policy.min_epochs && detail::effective_on(context, "cache.features") == false &&
      detail::samples_can_be_kept(context)) {
    finding.fixes.push_back(detail::keep_samples_fix(context, "keep what the first epoch computed for the later ones"));
  }
  return finding;
}

}  // namespace

const Rule& loader_no_workers() {
  static const Rule kRule{
      .id = "loader-no-workers",
      .verdict = Verdict::kInputBound,
      .title = "The loader runs in the training process",
      .topic = "loader workers",
      .explanation =
          "With no workers, the training thread reads, decodes and collates every sample itself, and the device waits "
          "meanwhile. Workers do that while the step runs, so that a step takes as long as the slower of the two. "
          "Where the CPU is also the device that trains, both compete for the same CPUs: then only what fits on idle "
          "CPUs can be hidden, and the bound says how much that is. What the sampler takes stays in the training "
          "thread.",
      .thresholds =
          "From warning_share (10 %) of the wall time spent waiting for input; critical from critical_share (30 %). "
          "Where the bound of workers is below min_bound (1.05), none are proposed and it is at most a warning; the "
          "bound is then that of batches that cost nothing. It is a hint where other processes take the CPUs "
          "(crowded_out, 30 %).",
      .needs =
          "the effective loader.workers, step times with the wait for input; for the bound also the CPUs that the run "
          "may use and used",
      .proposes =
          "loader.workers: as many as hide the work, one CPU of more than two left for the training thread, up to "
          "four a CPU where samples mostly wait; cache.features when epochs repeat and it is off",
      .evaluate = evaluate_loader_no_workers,
      .counts = Counts::kHostTime,
      .waits = "for data that one thread makes",
      .shows = Symptom::kSamplesInLoop,
      .about_samples = true,
      .costly_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
