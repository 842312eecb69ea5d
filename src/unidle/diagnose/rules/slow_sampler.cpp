#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/wait_for_batch.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

bool is_of_wait(const HotLine& line) {
  return line.role == "train" && (line.phase == "input" || line.phase == "indices");
}

Evaluation evaluate_slow_sampler(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (std::ranges::none_of(signals.hot, is_of_wait)) {
    return Missing{"what runs while training waits for a batch (stack samples)"};
  }
  if (!context.steady_input) {
    return Missing{context.no_steps};
  }
  const auto hot = detail::hot_sampler(signals);
  if (!hot || hot->looks < detail::kEnoughStackSamples) {
    return Nothing{};
  }
  const double share = *context.steady_input * hot->share;
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::place(hot->where);
  finding.evidence.push_back(context.say("{} of the wait for a batch is in the sampler, {}, by {} stack samples",
                                         format_share(hot->share), hot->text(), hot->looks));
  if (const auto made = detail::made_in_wait(context)) {
    finding.evidence.push_back(
        context.say("making the samples of a batch takes {} of the wait for it", format_share(*made)));
  }
  finding.evidence.push_back("it runs in the training process, with workers as well");
  return finding;
}

}  // namespace

const Rule& slow_sampler() {
  static const Rule kRule{
      .id = "slow-sampler",
      .verdict = Verdict::kInputBound,
      .title = "The sampler takes long to choose the samples of a batch",
      .topic = "choice of samples",
      .explanation =
          "A sampler gives the loader the indices of a batch. It always runs in the training process: workers make "
          "samples and do not help. One that searches through all labels for each batch costs more than the samples "
          "themselves.",
      .thresholds =
          "The wait for input, as far as stack samples show the program's sampler in it, from warning_share (10 %) of "
          "the wall time; critical from critical_share (30 %). Below 20 stack samples of that wait, nothing is said.",
      .needs = "stack samples of the wait for input, step times with that wait",
      .proposes =
          "let the sampler prepare once what does not change (such as a list of indices for each class), and only draw "
          "from it for each batch",
      .evaluate = evaluate_slow_sampler,
      .counts = Counts::kHostTime,
      .waits = "for the sampler, which chooses the samples of a batch",
      .explains = {Symptom::kSamplesInLoop, Symptom::kNoUseOfWorkers, Symptom::kWorkersBehind,
                   Symptom::kBatchesInBursts, Symptom::kNoBatch},
      .about_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
