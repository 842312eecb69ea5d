#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unidle/account/ranks.h"
#include "unidle/base/stats.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// What a step waits for gradients of others where nobody is late, in seconds: the exchange itself.
std::optional<double> exchange_alone_s(const std::vector<RankTime>& ranks) {
  if (const auto known = account::arrivals(ranks)) {
    return known->exchange_s;
  }
  std::optional<double> least_s;
  for (const RankTime& rank : ranks) {
    least_s = std::min(least_s.value_or(*rank.wait_s), *rank.wait_s);
  }
  return ranks.size() < 2 ? std::nullopt : least_s;
}

/// The share of the wall time in which nothing but the exchange runs, and how that is known.
struct Exchange {
  double share = 0;
  std::vector<std::string> evidence;
  std::optional<std::string> where = {};  // of an exchange by hand
};

Exchange exchange_of_timeline(const Context& context, const DeviceTimeline& timeline) {
  const double alone = timeline.communication_alone;
  return {
      alone,
      {context.say("in the profiled steps the device exchanges data with others for {} of the time; for {} it does "
                   "nothing else",
                   format_share(timeline.communication), format_share(alone)),
       "a late rank makes the others wait in the exchange: the traces of all ranks, given together, show which one"}};
}

std::optional<Exchange> exchange_of_ranks(const Context& context, const Policy& policy) {
  const std::vector<RankTime> ranks = account::ranks_that_wait(context.signals.ranks);
  const auto alone_s = exchange_alone_s(ranks);
  if (!alone_s || !context.train) {
    return std::nullopt;
  }
  std::vector<double> steps_s;
  double beside_s = 0;  // what it takes from the backward pass beside it; unknown while others take CPUs too; a GPU
                        // computes meanwhile
  bool known = context.on_cpu && !others_disturb(context.signals.others_cpus_used.value_or(0),
                                                 context.signals.cpus_used.value_or(0), policy);
  for (const RankTime& rank : ranks) {
    steps_s.push_back(rank.step_s);
    known = known && rank.exchange_s;
    const double more_s = std::max(0.0, rank.exchange_s.value_or(0) - *rank.wait_s);
    beside_s = steps_s.size() == 1 ? more_s : std::min(beside_s, more_s);
  }
  const double step_s = median(steps_s);
  const double whole_s = *alone_s + (known ? beside_s : 0);
  Exchange found{std::min(1.0, whole_s / step_s) * *context.train, {}};
  const bool by_hand = std::ranges::any_of(ranks, [](const RankTime& rank) { return rank.by_hand_s.has_value(); });
  found.evidence.push_back(
      by_hand
          ? context.say("of each step of {}, even the rank that waits least spends {} in calls of torch.distributed, "
                        "while its model does nothing",
                        format_seconds(step_s), format_seconds(*alone_s))
          : context.say("of each step of {}, even the rank that comes last waits {} for gradients, after "
                        "its backward pass",
                        format_seconds(step_s), format_seconds(*alone_s)));
  if (by_hand) {
    const auto hot = detail::hot_function(
        context.signals, [](const HotLine& line) { return line.role == "train" && line.phase == "exchange"; });
    found.where = hot ? detail::place(hot->where) : std::nullopt;
  }
  if (known && beside_s > 0) {
    found.evidence.push_back(
        context.say("the exchange also runs during the backward pass, on the same CPUs, and makes it {} longer",
                    format_seconds(beside_s)));
  }
  if (const auto& exchange = context.signals.exchange; exchange && exchange->gradient_bytes) {
    found.evidence.push_back(context.say("each exchange sends {} of gradients by {}",
                                         detail::format_noted_bytes(*exchange->gradient_bytes), exchange->backend));
  }
  return found;
}

/// Gradients accumulate over several micro-batches and are exchanged after each of them.
/// REQUIRES: context.signals.exchange.
bool exchanges_each_micro_batch(const Context& context) {
  constexpr double kSeveral = 1.5;
  const auto& micro_batches = context.signals.micro_batches;
  return micro_batches && *micro_batches >= kSeveral && context.signals.exchange->per_step.value_or(1) >= kSeveral;
}

/// What would help, the surest first.
void add_exchange_fixes(const Context& context, Finding& finding) {
  const auto add = [&](std::string_view how) {
    finding.fixes.push_back(detail::code_fix(context, "batch.accumulation", how));
  };
  const auto& exchange = context.signals.exchange;
  if (finding.where) {
    add("let DistributedDataParallel exchange the gradients: it groups them in buckets and sends each while the "
        "backward pass still computes others; or exchange less often, with more samples in a step");
    return;
  }
  if (context.signals.timeline || !exchange) {
    add("exchange less, or during the backward pass (no_sync() while gradients accumulate, 16-bit gradients, larger "
        "DistributedDataParallel buckets, FSDP prefetching)");
    return;
  }
  if (exchange->backend == "gloo" && context.on_gpu) {
    add("exchange by NCCL, from GPU to GPU: init_process_group(\"nccl\")");
  }
  if (exchanges_each_micro_batch(context)) {
    add("run all micro-batches of a step but the last one under model.no_sync(): gradients are exchanged in each of "
        "them, and once is enough");
  } else {
    add("exchange less often: more samples in a step, or several batches in one, all but the last one under "
        "model.no_sync(); both change how often parameters are updated");
  }
  if (exchange->hook.empty() && !context.signals.model_in_16_bits()) {
    add("exchange half the bytes: model.register_comm_hook(None, default_hooks.bf16_compress_hook) rounds gradients to "
        "16 bits (from torch.distributed.algorithms.ddp_comm_hooks import default_hooks)");
  }
  if (exchange->find_unused.value_or(false) && !exchange->static_graph.value_or(false)) {
    add("if every parameter gets a gradient in each step, leave out find_unused_parameters=True: no step then searches "
        "the graph, and the exchange follows the order in which gradients are ready. If always the same parameters get "
        "none, keep it and add static_graph=True. Otherwise leave it: DistributedDataParallel stops with an error "
        "without it");
  }
}

Evaluation evaluate_communication_bound(const Context& context, const Policy& policy) {
  auto exchange = context.signals.timeline ? std::optional(exchange_of_timeline(context, *context.signals.timeline))
                                           : exchange_of_ranks(context, policy);
  if (!exchange && context.signals.ranks.size() > 1) {
    return Missing{
        "how long ranks wait for each other: DistributedDataParallel measures it, stack samples show exchange by hand, "
        "other ways to exchange do not (a profiler's trace with the device's kernels shows it)"};
  }
  if (!exchange) {
    return Missing{detail::kTimelineMissing};
  }
  if (exchange->share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(exchange->share, policy);
  finding.evidence = std::move(exchange->evidence);
  finding.where = exchange->where;
  add_exchange_fixes(context, finding);
  return finding;
}

}  // namespace

const Rule& communication_bound() {
  static const Rule kRule{
      .id = "communication-bound",
      .verdict = Verdict::kCommunicationBound,
      .title = "Exchange between devices does not overlap with computing",
      .topic = "exchange between devices",
      .explanation =
          "Devices that train together exchange gradients, parameters or activations. A communication kernel (NCCL, "
          "RCCL) that runs at the same time as other kernels costs little. One that runs alone makes the device wait "
          "for the link or for a late rank. On CPUs, Gloo's threads also take time from those that compute.",
      .thresholds =
          "Time of communication kernels that no other kernel overlaps, from warning_share (10 %) of the wall time; "
          "critical from critical_share (30 %). Without kernels, how long the rank that comes last waits for gradients "
          "after its own backward pass: DistributedDataParallel times that, and the median of the exchanges that all "
          "ranks timed counts. On CPUs that no other processes use, the time by which the exchange lengthens the "
          "backward pass is added. For exchange by hand, the time that the rank that waits least spends in calls of "
          "torch.distributed between calls of the model, by stack samples.",
      .needs = "a profiler's trace or window with the device's kernels, or the waits of several ranks",
      .proposes = "less exchange, or exchange during the backward pass",
      .evaluate = evaluate_communication_bound,
      .counts = Counts::kDeviceTime,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
