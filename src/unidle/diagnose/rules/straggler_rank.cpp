#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_straggler_rank(const Context& context, const Policy& policy) {
  const std::vector<RankTime>& ranks = context.signals.ranks;
  if (ranks.size() < 2) {
    const bool alone = context.signals.parallel && *context.signals.parallel != "ddp";
    return alone ? Evaluation(Nothing{}) : Evaluation(Missing{"step times of several ranks"});
  }
  // The slowest rank waits least; all others wait for it.
  std::vector<double> work_s;
  for (const RankTime& rank : ranks) {
    work_s.push_back(rank.work_s());
  }
  const auto slowest = std::max_element(ranks.begin(), ranks.end(),
                                        [](const RankTime& a, const RankTime& b) { return a.work_s() < b.work_s(); });
  std::nth_element(work_s.begin(), work_s.begin() + static_cast<std::ptrdiff_t>((work_s.size() - 1) / 2), work_s.end());
  const double usual_s = work_s[(work_s.size() - 1) / 2];
  if (slowest->step_s <= 0) {
    return Nothing{};
  }
  const double share =
      std::clamp((slowest->work_s() - usual_s) / slowest->step_s, 0.0, 1.0) * context.train.value_or(1);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.evidence = {
      slowest->node.empty()
          ? context.say("rank {} works {} of its time in steps, the others {} of the same time", slowest->rank,
                        format_share(slowest->work_s() / slowest->step_s), format_share(usual_s / slowest->step_s))
          : context.say("rank {} on node {} works {} of its time in steps, the others {} of the same time",
                        slowest->rank, slowest->node, format_share(slowest->work_s() / slowest->step_s),
                        format_share(usual_s / slowest->step_s)),
      context.say("the other ranks wait for it in every step, {} of the wall time", format_share(share)),
  };
  return finding;
}

}  // namespace

const Rule& straggler_rank() {
  static const Rule kRule{
      .id = "straggler-rank",
      .verdict = Verdict::kUnknown,
      .title = "One rank makes the others wait",
      .topic = "ranks",
      .explanation =
          "In data-parallel training all ranks exchange gradients in every step, so the slowest sets the pace. One "
          "rank with a throttled or shared device, a slower disk, longer samples or fewer CPUs holds up all others.",
      .thresholds =
          "What the slowest rank works longer than the middle one, from warning_share (10 %) of the wall time; "
          "critical from critical_share (30 %).",
      .needs = "each rank's time in steps and in collectives",
      .proposes = "look at the device, the CPUs and the data of that rank alone",
      .evaluate = evaluate_straggler_rank,
      .counts = Counts::kOther,
      .sentence = "Your ranks wait for the slowest of them for {share} of the run",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
