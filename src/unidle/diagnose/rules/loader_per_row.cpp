#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/wait_for_batch.h"
#include "unidle/diagnose/rule.h"
#include "unidle/language/sentence.h"

namespace unidle::diagnose::rules {

namespace {

/// The cost of fetching one row: the median, because a stall elsewhere is not a property of a row.
std::optional<double> row_s(const Signals& signals) {
  return signals.samples && signals.samples->p50_s ? signals.samples->p50_s : signals.sample_s;
}

/// The part of the wait for a batch in which rows are fetched. Workers also send batches and wait for CPUs; without
/// them, the sampler may take most of it.
double made_of_wait(const Context& context) {
  const bool known = context.workers.value_or(0) > 0 && context.work_s && context.input_s.value_or(0) > 0;
  return known ? std::min(1.0, *context.work_s / *context.input_s) : detail::made_in_wait(context).value_or(1);
}

/// Proposes only what can work: fetching rows together when that was tried, else workers.
void add_fixes(const Context& context, const Policy& policy, Finding& finding) {
  const LoaderFacts& loader = *context.signals.loader;
  if (loader.gathers.value_or(false)) {
    finding.fixes.push_back(detail::make_fix(context, "loader.gather", true, "fetch the rows of a batch together"));
    return;
  }
  if (!loader.gathers_not.empty()) {
    const std::string why = translate_sentence(context.language, loader.gathers_not);
    finding.evidence.push_back(loader.gathers
                                   ? context.say("the rows of a batch cannot be taken together: {}", why)
                                   : context.say("whether the dataset gives many rows at once was not tried: {}", why));
  }
  if (context.workers == 0 && context.input_s) {
    const double made_s = *context.input_s * made_of_wait(context);
    const auto best = detail::step_with_workers(context, made_s);
    const auto bound = best ? std::optional(bound_of_run(context, *context.signals.step_s, *best)) : std::nullopt;
    // Workers would be started for each batch.
    const bool anew = detail::iterates_for_each_batch(context.signals, policy);
    if (anew || (bound && *bound < policy.min_bound)) {
      finding.fixes.push_back(
          detail::code_fix(context, "loader.workers",
                           "let the dataset return a batch for a list of indices (__getitems__), or index "
                           "the tensors in the loop"));
      return;
    }
    if (bound) {
      finding.speedup_bound = bound;
    }
    finding.fixes.push_back(detail::make_fix(
        context, "loader.workers", detail::workers_that_hide(context, made_s, policy),
        loader.dataset_where.empty()
            ? "prepare batches in workers while the step runs, or index the tensors in the loop"
            : "prepare batches in workers while the step runs; let the dataset return a batch for a list "
              "of indices (__getitems__) to gain more"));
  }
}

Evaluation evaluate_loader_per_row(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.loader || !signals.loader->in_memory || !signals.loader->map_style) {
    return Missing{"whether the samples are rows of a table in memory"};
  }
  if (!*signals.loader->in_memory || !*signals.loader->map_style || signals.loader->batched.value_or(false)) {
    return Nothing{};
  }
  if (!row_s(signals)) {
    return Missing{"what one sample costs"};
  }
  if (!context.steady_input) {
    return Missing{context.no_steps};
  }
  if (*row_s(signals) >= policy.row_s || *context.steady_input < policy.warning_share ||
      detail::collate_share(signals) >= policy.mostly) {
    return Nothing{};
  }
  const double share = *context.steady_input * made_of_wait(context);
  if (share < policy.warning_share) {
    return Nothing{};  // training, or its workers, wait for something else
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::place_of_samples(signals);
  const std::string row = format_seconds(*row_s(signals));
  finding.evidence.push_back(
      signals.batch_samples
          ? context.say("the data is in memory, and each of the {} rows of a batch is fetched by a call of {}",
                        *signals.batch_samples, row)
          : context.say("the data is in memory, and each row of a batch is fetched by a call of {}", row));
  finding.evidence.push_back(context.say("{} of each step is waiting for input", format_share(signals.step->input)));
  add_fixes(context, policy, finding);
  return finding;
}

}  // namespace

const Rule& loader_per_row() {
  static const Rule kRule{
      .id = "loader-per-row",
      .verdict = Verdict::kInputBound,
      .title = "Rows that are already in memory are fetched one by one",
      .topic = "row access",
      .explanation =
          "A table or tensor in memory gives a whole batch by one indexing operation. A loader that asks it for one "
          "row after the other spends its time in calls and in putting single rows together, which is 10 to 100 times "
          "slower; workers would only do the same elsewhere and send the rows through a pipe.",
      .thresholds =
          "A row counts as cheap below row_s (200 us). From warning_share (10 %) of the wall time spent waiting; "
          "critical from critical_share (30 %). No more of that wait counts than one thread needs to make a batch.",
      .needs =
          "whether the dataset holds its rows in memory, the cost of one sample, step times with the wait for input",
      .proposes =
          "loader.gather where rows fetched together were tried and were the same, otherwise loader.workers; in the "
          "code: let the dataset return a batch for a list of indices (__getitems__, or a sampler of batches with "
          "batch_size=None), or index the tensors in the loop",
      .evaluate = evaluate_loader_per_row,
      .counts = Counts::kHostTime,
      .waits = "for rows that are fetched from memory one by one",
      .explains = {Symptom::kSamplesInLoop, Symptom::kNoUseOfWorkers, Symptom::kWorkersBehind,
                   Symptom::kBatchesInBursts},
      .about_samples = true,
      .costly_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
