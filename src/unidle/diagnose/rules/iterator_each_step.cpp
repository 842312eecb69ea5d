#include "unidle/base/units.h"
#include "unidle/diagnose/detail/wait_for_batch.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// The share of the wall time that one iterator which is kept would save.
std::optional<double> lost_share(const Context& context) {
  if (context.workers.value_or(0) > 0) {
    // Workers that end after a batch or two made others that nobody takes, while the step competes with them.
    return context.input;
  }
  const auto made = detail::made_in_wait(context);
  return made ? std::optional(*context.input * (1 - *made)) : std::nullopt;
}

Evaluation evaluate_iterator_each_step(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.loader || !signals.loader->iterators) {
    return Missing{"how many iterators of the loader were made"};
  }
  if (!context.input) {
    return Missing{context.no_steps};
  }
  if (!detail::iterates_for_each_batch(signals, policy)) {
    return Nothing{};
  }
  const auto share = lost_share(context);
  if (!share) {
    return Missing{"what making the samples of a batch takes"};
  }
  if (*share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(*share, policy);
  finding.where = detail::place(signals.loader->iterated_where);
  if (!finding.where) {
    finding.where = detail::place(signals.loader->where);
  }
  finding.evidence = {
      context.say("{} iterators of the loader were made for {} batches", *signals.loader->iterators,
                  *signals.loader->batches),
      context.say("each orders all {} samples anew, of which one batch is used", *signals.loader->in_epoch)};
  if (context.workers.value_or(0) > 0) {
    finding.evidence.push_back(context.say("each starts {} workers", *context.workers));
  } else {
    finding.evidence.push_back(context.say("making the samples of a batch takes {} of the wait for it",
                                           format_share(*detail::made_in_wait(context))));
  }
  return finding;
}

}  // namespace

const Rule& iterator_each_step() {
  static const Rule kRule{
      .id = "iterator-each-step",
      .verdict = Verdict::kInputBound,
      .title = "The loader begins anew for each step",
      .topic = "iterators of the loader",
      .explanation =
          "next(iter(loader)) in the training loop makes an iterator, takes one batch of it and throws it away. A new "
          "iterator draws an order of all samples and starts the loader's workers, which takes longer than a batch. "
          "More workers make it worse. One iterator that is kept does this once for a pass over the data.",
      .thresholds =
          "An iterator for at least mostly (50 %) of the batches, where a pass over the data has several. Without "
          "workers the wait for input less what making the samples takes, with workers all of it, from warning_share "
          "(10 %) of the wall time; critical from critical_share (30 %).",
      .needs =
          "how many iterators of the loader were made and how many batches they gave, the samples of a pass, step "
          "times with the wait for input; without workers the cost of the samples",
      .proposes =
          "make one iterator before the loop (batches = iter(loader)), take each batch by next(batches), and make "
          "another one only when it ends",
      .evaluate = evaluate_iterator_each_step,
      .counts = Counts::kHostTime,
      .waits = "for a loader that begins anew each time",
      .explains = {Symptom::kSamplesInLoop, Symptom::kNoUseOfWorkers, Symptom::kWorkersBehind,
                   Symptom::kBatchesInBursts, Symptom::kWorkersRestarted, Symptom::kNoBatch, Symptom::kCodeBetween},
      .about_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
