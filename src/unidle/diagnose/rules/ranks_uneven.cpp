#include <algorithm>

#include "unidle/account/ranks.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_ranks_uneven(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const std::vector<RankTime> ranks = account::ranks_that_wait(signals.ranks);
  const auto found = account::arrivals(ranks);
  if (!found) {
    const bool alone = signals.ranks.size() < 2 && signals.parallel && *signals.parallel != "ddp";
    return alone ? Evaluation(Nothing{}) : Evaluation(Missing{"how long several ranks wait in the same exchanges"});
  }
  if (!signals.batch_shapes) {
    return Missing{"shapes of the batches"};
  }
  const bool in_turn = found->last_share < late_rank(ranks.size(), policy);
  const double late = std::min(1.0, found->others_wait_s / ranks[found->last].step_s);
  const double share = late * context.train.value_or(1);
  const bool disturbed =
      context.on_cpu && others_disturb(signals.others_cpus_used.value_or(0), signals.cpus_used.value_or(0), policy);
  if (!in_turn || *signals.batch_shapes <= policy.fixed_shapes || share < policy.warning_share ||
      (disturbed && late < policy.late_disturbed)) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.evidence.push_back(context.say("a rank waits {} of each step of {} for whichever of the others comes last",
                                         format_seconds(found->others_wait_s),
                                         format_seconds(ranks[found->last].step_s)));
  finding.evidence.push_back(context.say("no rank is always late: rank {} comes last most often, in {} of {} exchanges",
                                         ranks[found->last].rank, format_share(found->last_share), found->compared));
  finding.evidence.push_back(context.say("batches have {} different shapes", *signals.batch_shapes));
  return finding;
}

}  // namespace

const Rule& ranks_uneven() {
  static const Rule kRule{
      .id = "ranks-uneven",
      .verdict = Verdict::kUnknown,
      .title = "Ranks get batches of unequal work",
      .topic = "balance of ranks",
      .explanation =
          "All ranks exchange gradients in every step, so each step takes as long as the largest batch of any rank. "
          "With sequences or pictures of different sizes the ranks hold each other up in turn.",
      .thresholds =
          "How long a rank waits on average for whichever comes last, from warning_share (10 %) of the wall time; "
          "critical from critical_share (30 %). Only where no rank comes last in mostly_last (75 %; with four ranks, "
          "62.5 %) of the exchanges, and batches have more than fixed_shapes (4) shapes. While other processes use the "
          "CPUs on which ranks train, the wait must also take late_disturbed (50 %) of a step.",
      .needs = "waits of all ranks in the same exchanges, shapes of the batches",
      .proposes =
          "give all ranks batches of about the same size in the same step: sort by length within shuffled pools of "
          "many "
          "batches, cut each into batches, shuffle these, and deal neighbouring ones to the ranks of one step; or fill "
          "batches by a number of tokens",
      .evaluate = evaluate_ranks_uneven,
      .counts = Counts::kOther,
      .sentence = "Your ranks wait for each other's larger batches for {share} of the run",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
