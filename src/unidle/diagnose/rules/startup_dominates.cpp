#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

/// Stack samples in a second, at most: python/shim/_unidle_shim/facts/stack_sampler.py.
constexpr double kSamplesPerSecond = 20;

/// Names the functions and import statements of the program in which much of the start-up passes. Passes of a model
/// before the first step, as in self-play, belong to other phases: samples of the start-up are only of a part of it.
void add_functions(const Context& context, double startup_s, Finding& finding) {
  const bool no_step = !context.signals.steps;  // phases begin with the first one
  std::int64_t all = 0;
  for (const HotLine& line : context.signals.hot) {
    all = std::max(all, line.role == "train" && line.phase == "startup" ? line.total : 0);
  }
  const double seen = no_step ? 1 : std::min(1.0, static_cast<double>(all) / (kSamplesPerSecond * startup_s));
  for (const detail::HotFunction& hot : detail::hot_functions(context.signals, [&](const HotLine& line) {
         return line.role == "train" && (no_step || line.phase == "startup");
       })) {
    const double of_startup = hot.share * seen;
    if (hot.looks < detail::kEnoughStackSamples || of_startup < detail::kLeastShareOfStackSamples) {
      return;
    }
    if (!finding.where) {
      finding.where = detail::place(hot.where);
    }
    const std::string share = format_share(of_startup);
    finding.evidence.push_back(hot.caller.empty() ? context.say("{} of that time is spent in {}", share, hot.text())
                                                  : context.say("{} of that time is spent in {}, called by {}", share,
                                                                hot.text(), hot.caller));
  }
}

Evaluation evaluate_startup_dominates(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const bool no_step = signals.steps.value_or(0) < 1;
  if (!context.startup || (no_step && !signals.optimizer)) {
    return Missing{context.say("when training began")};
  }
  if (signals.blind == "no-update") {
    return Missing{context.no_steps};
  }
  // Batches that are read and not trained are another rule's.
  const double startup_s = std::max(0.0, signals.time.startup - (signals.skipped ? signals.skipped->seconds : 0));
  const double of_run = *context.startup * startup_s / std::max(signals.time.startup, 1e-9);
  const bool is_long = startup_s >= policy.startup_long_s;
  if (of_run < (is_long ? policy.startup_warning_share : policy.startup_info_share)) {
    return Nothing{};
  }
  Finding finding;
  finding.share = of_run;
  finding.severity = is_long || no_step ? Severity::kWarning : Severity::kInfo;
  if (is_long && !no_step) {  // a longer run hides a short start
    finding.speedup_bound = amdahl(of_run);
  }
  const std::string before = format_seconds(startup_s);
  finding.evidence.push_back(no_step ? context.say("the run ended after {} without a finished training step", before)
                             : is_long
                                 ? context.say("{} pass before the first step", before)
                                 : context.say("{} pass before the first step; a longer run spreads that out", before));
  add_functions(context, startup_s, finding);
  return finding;
}

}  // namespace

const Rule& startup_dominates() {
  static const Rule kRule{
      .id = "startup-dominates",
      .verdict = Verdict::kOverheadBound,
      .title = "Start-up takes an undue share of the run",
      .topic = "start-up",
      .explanation =
          "Importing the framework, parsing and preparing data and compiling happen before the first step. In a short "
          "trial that is a large share and means nothing: a longer run spreads it out. A start of minutes, paid again "
          "by every run, often prepares data that could be kept. Stack samples show where the program was meanwhile: "
          "its functions, and its outermost import statements with the package that takes the time.",
      .thresholds =
          "A hint from startup_info_share (25 %) of the wall time; a warning from startup_warning_share (20 %) when "
          "it takes at least startup_long_s (120 s), or when a program that made an optimiser finished no step.",
      .needs = "when the first step began; stack samples of the start-up, where there are any",
      .proposes =
          "run longer, or keep what the start-up prepares for later runs (python -X importtime shows what imports "
          "take)",
      .evaluate = evaluate_startup_dominates,
      .counts = Counts::kOther,
      .sentence = "Your run spends {share} of its time before its first training step is finished",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
