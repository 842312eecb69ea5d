#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/line_advice.h"
#include "unidle/diagnose/detail/saving_functions.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// The share of a step in which the analysed rank exchanges by hand; zero where other rules measure its exchange.
double exchanged_by_hand(const Signals& signals) {
  for (const RankTime& rank : signals.ranks) {
    if (rank.by_hand_s && signals.training_process == rank.process) {
      return *rank.by_hand_s / rank.step_s;
    }
  }
  return 0;
}

/// Whether the line runs outside the model, its gradients, the optimiser and logging. An exchange by hand is a cause of
/// its own.
bool is_between(const HotLine& line, bool by_hand) {
  return line.role == "train" && (line.phase == "between" || (!by_hand && line.phase == "exchange"));
}

/// The share of the stack samples in training steps that fell on such lines: a step's other time also contains calls
/// of the model that are not patched.
double sampled(const Signals& signals, bool by_hand) {
  std::map<std::string_view, double> looks;  // by phase
  for (const HotLine& line : signals.hot) {
    if (is_between(line, by_hand) ||
        (line.role == "train" && (line.phase == "train" || line.phase == "logging" || line.phase == "exchange"))) {
      looks[line.phase] = static_cast<double>(line.total);
    }
  }
  double all = 0;
  for (const auto& [phase, count] : looks) {
    all += count;
  }
  const double between = looks["between"] + (by_hand ? 0 : looks["exchange"]);
  return between > 0 ? between / all : 1;
}

/// The function's share of all stack samples of such lines, of which only the most frequent are listed.
double part_of(const detail::HotFunction& hot, const Signals& signals) {
  std::int64_t all = hot.looks;
  for (const HotLine& line : signals.hot) {
    if (line.role == "train" && line.phase == "between") {
      all = std::max(all, line.total);
    }
  }
  return hot.share * static_cast<double>(hot.looks) / static_cast<double>(all);
}

/// The share of a step in which the program makes its batches itself, without a loader that others could judge.
double input_by_hand(const Context& context) {
  const Signals& signals = context.signals;
  return signals.loader || context.workers || signals.hot.empty() ? 0 : signals.step->input;
}

Evaluation evaluate_python_between_steps(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.step || context.train.value_or(0) <= 0 || signals.wall_s <= 0) {
    return Missing{context.no_steps.empty() ? context.say("training steps (none were seen)") : context.no_steps};
  }
  if (context.on_gpu && !context.idle) {
    return Missing{context.say("how long the device idles")};
  }
  const double logs = signals.logging ? signals.logging->seconds / signals.wall_s : 0;
  const double exchange = exchanged_by_hand(signals);
  const bool by_hand = exchange > 0;
  const auto flushes = detail::waits_of(signals, detail::Waits::kFlush);  // a rule of its own
  const double flushed = flushes ? flushes->seconds / signals.wall_s : 0;
  const double input = input_by_hand(context);
  const double saves = detail::part_beside_saving(signals) * signals.step->other;  // a rule of its own as well
  const double other = signals.step->other - saves - (logs + flushed) / *context.train - exchange;
  const double between = std::min(other + input, sampled(signals, by_hand));
  const double outside = between * *context.train;
  const double share = std::min(outside, context.on_gpu ? *context.idle : 1.0);
  if (share < policy.warning_share) {
    return Nothing{};
  }
  const auto hot = detail::hot_function(signals, [&](const HotLine& line) {
    const bool flushes_here = flushed > 0 && flushes->top != nullptr && line.where == flushes->top->where;
    return is_between(line, by_hand) && !flushes_here && (saves <= 0 || !detail::is_beside_saving(signals, line));
  });
  const bool small = between < policy.between_steps;
  const bool spread = hot && share * part_of(*hot, signals) < policy.warning_share;
  if (small && (!hot || spread)) {
    return Nothing{};
  }
  if (!hot || hot->looks < detail::kEnoughStackSamples) {
    return Missing{context.say("which lines run between the calls of the model (stack samples)")};
  }
  Finding finding = detail::of_share(share, policy);
  if (small || spread) {
    finding.severity = Severity::kInfo;
  }
  if (input > other) {
    finding.verdict = Verdict::kInputBound;
  }
  finding.evidence.push_back(
      context.say("{} of each step lies outside the model, its gradients, the optimiser, the loader and logging",
                  format_share(between)));
  if (signals.stalls && signals.stalls->part == account::kOther) {
    finding.evidence.push_back(detail::stalls_in_words(context, *signals.stalls));
  }
  detail::add_hot_function(context, *hot, finding);
  finding.proposes = detail::advice_for_line(signals, policy, hot->where, "");
  if (spread) {
    finding.evidence.push_back("the time is spread over many lines, none of which costs much alone");
  }
  return finding;
}

}  // namespace

const Rule& python_between_steps() {
  static const Rule kRule{
      .id = "python-between-steps",
      .verdict = Verdict::kOverheadBound,
      .title = "The program's own code between the steps takes an undue share",
      .topic = "code between steps",
      .explanation =
          "A training loop does more than train: it plays an environment, samples from a replay buffer, makes its "
          "batches itself, computes metrics of each batch, draws. Such code runs on one thread, and the device waits "
          "for it. Stack samples show the lines.",
      .thresholds =
          "The part of a step that is none of these: input from a loader, copies, compute, waits, optimiser, logging, "
          "flushes of memory, exchange by hand. From warning_share (10 %) of the wall time; critical from "
          "critical_share (30 %). A hint below between_steps (20 %) of a step, if one function takes warning_share, "
          "and "
          "above it if none does. On a GPU at most the time that it idles.",
      .needs = "step times, stack samples of the lines that run between the calls of the model",
      .proposes = "do it less often, for whole batches at once, or in other processes",
      .evaluate = evaluate_python_between_steps,
      .counts = Counts::kHostTime,
      .sentence = "Your run spends {share} of its time outside model, optimiser and loader, above all at {where}",
      .shows = Symptom::kCodeBetween,
      .explains = {Symptom::kStalls},
      .about_line = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
