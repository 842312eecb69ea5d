#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/development.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_steps_slow_down(const Context& context, const Policy& policy) {
  const auto& development = context.signals.development;
  if (!development || development->step_s.empty() || !context.train) {
    return Missing{context.say("how the length of a step develops")};
  }
  if (context.crowded_out) {
    return Missing{context.say("how the length of a step develops without other processes")};
  }
  const std::vector<double>& step_s = development->step_s;
  const bool disturbed =
      others_disturb(context.signals.others_cpus_used.value_or(0), context.signals.cpus_used.value_or(0), policy);
  const double least = disturbed ? policy.slower_steps_disturbed : policy.slower_steps;
  if (step_s.front() <= 0 || step_s.back() < least * step_s.front() || !detail::grows_steadily(step_s)) {
    return Nothing{};
  }
  // Sequences that become longer by a plan make the model's part longer, and nothing else.
  const bool varied = context.signals.batch_shapes.value_or(0) > policy.fixed_shapes;
  if (varied && (!context.signals.step || context.signals.step->other < policy.warning_share)) {
    return Nothing{};
  }
  double sum = 0;
  for (const double one : step_s) {
    sum += one;
  }
  const double lost = 1 - step_s.front() * static_cast<double>(step_s.size()) / sum;
  const double share = lost * *context.train;
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.evidence.push_back(context.say("a step took {} in the first fifth of the training and {} in the last",
                                         format_seconds(step_s.front()), format_seconds(step_s.back())));
  finding.evidence.push_back(context.say("it became longer little by little, with as many samples"));
  const auto hot = detail::hot_function(
      context.signals, [](const HotLine& line) { return line.role == "train" && line.phase == "between"; });
  if (hot && context.signals.step && context.signals.step->other >= policy.warning_share) {
    finding.where = detail::place(hot->where);
  }
  constexpr std::size_t kMostNamed = 3;
  for (std::size_t i = 0; i < std::min(kMostNamed, context.signals.growing.size()); ++i) {
    const GrowingFacts& one = context.signals.growing[i];
    finding.where = finding.where ? finding.where : detail::place(one.where);
    finding.evidence.push_back(context.say("{} grows by {:.3g} with each step", one.text(), one.per_step));
  }
  return finding;
}

}  // namespace

const Rule& steps_slow_down() {
  static const Rule kRule{
      .id = "steps-slow-down",
      .verdict = Verdict::kOverheadBound,
      .title = "Steps become slower and slower",
      .topic = "steps that slow down",
      .explanation =
          "A step that does the same work should take the same time at the end as at the beginning. Where it grows, "
          "something is kept and read again in each step: a list of all losses of which a mean is taken, a graph that "
          "is never freed, a file that is written anew.",
      .thresholds =
          "The median step of the last fifth of the training at least slower_steps (1.5) times that of the first, "
          "slower_steps_disturbed (2.5) while other processes use the CPUs, growing over nearly all fifths and not in "
          "one jump, with as many samples; where batches "
          "have more than fixed_shapes (4) shapes, only if warning_share (10 %) of a step lies outside the model. The "
          "share is what steps took beyond those of the first fifth. Not judged where other processes take the CPUs "
          "(crowded_out, 30 %).",
      .needs = "at least 20 steps after warm-up; names lists, dicts and sets of the program that grow with the steps",
      .proposes =
          "look for a list, a file or a graph that grows with every step and is read in each; keep sums instead",
      .evaluate = evaluate_steps_slow_down,
      .counts = Counts::kOther,
      .sentence = "Your steps become slower and slower, which costs {share} of the run",
      .explains = {Symptom::kCodeBetween},
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
