#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

std::string part_in_words(const Context& context, account::Part part) {
  switch (part) {
    case account::kTransfer: return context.say("the step copies its batch");
    case account::kCompute: return context.say("the model computes");
    case account::kSync: return context.say("the host waits for the device");
    case account::kOptimizer: return context.say("the optimiser updates");
    case account::kInput:
    case account::kOther:
    case account::kPartCount: break;
  }
  return context.say("the program does something else between the calls of its model");
}

/// The function that calls the model in training, and most often takes the steps.
std::string training_function(const Signals& signals) {
  const auto calls = std::ranges::find(signals.hot, signals.model_where, &HotLine::where);
  return calls == signals.hot.end() || signals.model_where.empty() ? "" : calls->function;
}

/// The function in which the stalls probably are: most looks at that part of the steps fell there. Of the model's
/// computing the usual steps have most looks, so the function that takes them does not count.
std::optional<detail::HotFunction> hot_in(const Context& context, account::Part part) {
  const std::string phase = part == account::kOther ? "between" : "train";
  const std::string trains = part == account::kCompute ? training_function(context.signals) : "";
  const auto hot = detail::hot_function(context.signals, [&](const HotLine& line) {
    return line.role == "train" && line.phase == phase && (trains.empty() || line.function != trains);
  });
  return hot && hot->looks >= detail::kEnoughStackSamples ? hot : std::nullopt;
}

Evaluation evaluate_stalls_recur(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.step || signals.wall_s <= 0 || !signals.step_lengths_seen) {
    return Missing{context.no_steps.empty() ? context.say("the length of each training step") : context.no_steps};
  }
  if (!signals.stalls || signals.stalls->part == account::kInput) {
    return Nothing{};  // other rules speak of waits for input, which come back with rounds of workers and with epochs
  }
  const account::Stalls& stalls = *signals.stalls;
  const double previews = signals.operations ? signals.operations->previews : 0;
  if (stalls.part == account::kCompute && 2 * previews >= static_cast<double>(stalls.count)) {
    return Nothing{};  // an agent plays, or the model makes samples
  }
  if (context.on_gpu && !context.idle) {
    return Missing{context.say("how long the device idles")};  // a host that is ahead of its device waits now and then
  }
  const double most = context.on_gpu ? *context.idle : context.train.value_or(1);
  const double share = std::min(stalls.total_s / signals.wall_s, most);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.evidence.push_back(detail::stalls_in_words(context, stalls));
  finding.evidence.push_back(context.say("meanwhile {}", part_in_words(context, stalls.part)));
  if (const auto hot = hot_in(context, stalls.part)) {
    detail::add_hot_function(context, *hot, finding);
  }
  return finding;
}

}  // namespace

const Rule& stalls_recur() {
  static const Rule kRule{
      .id = "stalls-recur",
      .verdict = Verdict::kOverheadBound,
      .title = "Stalls come back at regular intervals",
      .topic = "stalls that come back",
      .explanation =
          "Something happens every so many steps or seconds and holds the run up each time: a file is written, a "
          "picture drawn, a metric computed over everything so far, memory collected, a next file opened. The mean "
          "step hides it. Validation and checkpoints that are known as such do not count.",
      .thresholds =
          "A stall is a step that takes at least 4 times the median step and 20 ms more. Stalls are regular if three "
          "quarters of the intervals between them are within 5 % of the median interval, or within one step where that "
          "is 4 steps or more. Needed are at least 4 stalls, or 6 where only the seconds between them are regular; a "
          "median interval of at least 2 steps; and at least half of the steps between the first stall and the last. "
          "What stalls take beyond the median step from warning_share (10 %) of the wall time; critical from "
          "critical_share (30 %). On a GPU at most the time that it idles. Waits for input do not count. Stalls in "
          "which the "
          "model chooses actions or makes samples do not count either.",
      .needs = "the length of each training step; names the function where stack samples show it",
      .proposes = "do it less often, beside the training, or bound what it works on",
      .evaluate = evaluate_stalls_recur,
      .counts = Counts::kHostTime,
      .sentence = "Your run stalls at regular intervals, which costs {share} of its time",
      .shows = Symptom::kStalls,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
