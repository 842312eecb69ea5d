#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/account/ranks.h"
#include "unidle/base/stats.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// The rank for which the others wait.
struct Straggler {
  const RankTime* rank = nullptr;
  double late_s = 0;  // in each step
  double last_share =
      1;  // share of the compared exchanges to which it came last; all of them where only totals are known
  std::size_t compared = 0;
};

/// By each exchange, else by totals: the slowest rank waits least, and the middle one of the others waits for it.
Straggler straggler_of(const std::vector<RankTime>& ranks) {
  if (const auto known = account::arrivals(ranks)) {
    return {&ranks[known->last], known->late_s, known->last_share, known->compared};
  }
  std::vector<double> work_s;
  for (const RankTime& rank : ranks) {
    work_s.push_back(rank.work_s());
  }
  const auto slowest = std::ranges::max_element(ranks, {}, &RankTime::work_s);
  const auto middle = work_s.begin() + static_cast<std::ptrdiff_t>((work_s.size() - 1) / 2);
  std::nth_element(work_s.begin(), middle, work_s.end());
  constexpr double kErrors = 3;  // by which stack samples may be wrong
  return {&*slowest, slowest->work_s() - *middle - kErrors * slowest->error_s};
}

std::string rank_in_words(const Context& context, const RankTime& rank) {
  return rank.node.empty() ? context.say("rank {}", rank.rank)
                           : context.say("rank {} on node {}", rank.rank, rank.node);
}

/// Seconds of the parts of a step without the wait for others; nothing where its steps were not seen.
std::optional<account::Parts> own_parts(const RankTime& rank) {
  auto parts = rank.parts;
  if (parts) {
    (*parts)[account::kCompute] = std::max(0.0, (*parts)[account::kCompute] - rank.wait_s.value_or(0));
  }
  return parts;
}

/// The part of a step that takes the rank longest beyond the median of the others.
struct LongerPart {
  account::Part part = account::kOther;
  double own_s = 0;
  double others_s = 0;
};

std::optional<LongerPart> longer_part(const std::vector<RankTime>& ranks, const RankTime& straggler) {
  const auto own = own_parts(straggler);
  std::optional<LongerPart> longest;
  for (std::size_t part = 0; own && part < account::kPartCount; ++part) {
    std::vector<double> others_s;
    for (const RankTime& rank : ranks) {
      if (const auto parts = own_parts(rank); parts && &rank != &straggler) {
        others_s.push_back((*parts)[part]);
      }
    }
    const double usual_s = others_s.empty() ? (*own)[part] : median(others_s);
    if (!longest || (*own)[part] - usual_s > longest->own_s - longest->others_s) {
      longest = LongerPart{static_cast<account::Part>(part), (*own)[part], usual_s};
    }
  }
  return longest;
}

/// What that part says about the cause, and what to look at.
void add_cause(const Context& context, const LongerPart& longer, const RankTime& straggler, Finding& finding) {
  const std::string own = format_seconds(longer.own_s);
  const std::string others = format_seconds(longer.others_s);
  const auto fix = [&](const char* knob, std::string_view how) {
    finding.fixes.push_back(detail::code_fix(context, knob, how));
  };
  switch (longer.part) {
    case account::kInput:
      finding.evidence.push_back(
          context.say("rank {} waits {} of each step for its batch, the others {}", straggler.rank, own, others));
      fix("loader.workers", "look at the loader of that rank alone: its disk, its samples, its CPUs");
      break;
    case account::kCompute:
      finding.evidence.push_back(
          context.say("rank {} computes {} of each step, the others {}", straggler.rank, own, others));
      fix("cpu.threads", "look at the device and the CPUs of that rank alone, and at the size of its batches");
      break;
    case account::kOther:
      finding.evidence.push_back(
          context.say("rank {} spends {} of each step outside of its model, its loader and its optimiser, the others "
                      "{}",
                      straggler.rank, own, others));
      fix("metrics.interval", "look at what only that rank does in its loop: logging, saving, metrics");
      break;
    case account::kTransfer:
    case account::kSync:
      finding.evidence.push_back(
          context.say("rank {} waits {} of each step for its device, the others {}", straggler.rank, own, others));
      break;
    case account::kOptimizer:
    case account::kPartCount: break;
  }
}

Evaluation evaluate_straggler_rank(const Context& context, const Policy& policy) {
  const std::vector<RankTime> ranks = account::ranks_that_wait(context.signals.ranks);
  if (ranks.size() < 2) {
    const bool alone =
        context.signals.ranks.size() < 2 && context.signals.parallel && *context.signals.parallel != "ddp";
    return alone ? Evaluation(Nothing{}) : Evaluation(Missing{"how long each of several ranks waits for the others"});
  }
  const Straggler straggler = straggler_of(ranks);
  const RankTime& slowest = *straggler.rank;
  const double late = std::clamp(straggler.late_s / slowest.step_s, 0.0, 1.0);
  const double share = late * context.train.value_or(1);
  const bool disturbed =
      others_disturb(context.signals.others_cpus_used.value_or(0), context.signals.cpus_used.value_or(0), policy);
  const double least = disturbed && context.on_cpu ? policy.late_disturbed : 0;
  if (share < policy.warning_share || straggler.last_share < late_rank(ranks.size(), policy) || late < least) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  if (straggler.compared > 0) {
    finding.evidence.push_back(context.say("{} comes last in {} of {} exchanges, {} after the others",
                                           rank_in_words(context, slowest), format_share(straggler.last_share),
                                           straggler.compared, format_seconds(straggler.late_s)));
  } else {
    finding.evidence.push_back(
        context.say("{} works for {} of each step, the others for {}", rank_in_words(context, slowest),
                    format_share(slowest.work_s() / slowest.step_s),
                    format_share(std::max(0.0, slowest.work_s() - straggler.late_s) / slowest.step_s)));
  }
  if (const auto longer = longer_part(ranks, slowest)) {
    add_cause(context, *longer, slowest, finding);
  }
  finding.evidence.push_back(context.say("the other ranks wait for it, {} of the wall time", format_share(share)));
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
          "How long the middle one of the other ranks waits for the slowest, from warning_share (10 %) of the wall "
          "time; critical from critical_share (30 %). The slowest has to come last in mostly_last (75 %; with four "
          "ranks, 62.5 %) of the exchanges that all ranks timed: ranks that come last in turn do not count. While "
          "other processes use the CPUs on which ranks train, the wait must also take late_disturbed (50 %) of a step.",
      .needs = "how long each rank waits for gradients of the others (DistributedDataParallel, traces of all ranks)",
      .proposes = "look at the device, the CPUs and the data of that rank alone",
      .evaluate = evaluate_straggler_rank,
      .counts = Counts::kOther,
      .sentence = "Your ranks wait for the slowest of them for {share} of the run",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
