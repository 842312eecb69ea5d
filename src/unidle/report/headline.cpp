// The first sentence of a comparison, and the ratio that it states.
#include <algorithm>

#include "unidle/report/comparison.h"
#include "unidle/report/scaling.h"

namespace unidle::report {

namespace {

/// REQUIRES: both ratios, or c.training_ratio where the whole does not decide.
const experiment::Ratio& decisive(const Comparison& c) { return c.by_whole() ? *c.total_ratio : *c.training_ratio; }

bool fell(experiment::SpeedChange change) {
  return change == experiment::SpeedChange::kSlower || change == experiment::SpeedChange::kRegression;
}

/// REQUIRES: c.by_whole().
std::string end_to_end_words(const Comparison& c, const std::string& a, const std::string& b,
                             const Translator& translator) {
  const bool faster = c.total == experiment::SpeedChange::kFaster;
  const experiment::Ratio& whole = *c.total_ratio;
  const std::string interval =
      translator.say("95 % interval {:.2f}x to {:.2f}x", whole.interval->low, whole.interval->high);
  return faster ? translator.say(
                      "{} is {:.2f}x as fast as {} from end to end ({}); its training steps alone run at "
                      "{:.2f}x the rate.",
                      b, whole.value, a, interval, c.training_ratio->value)
                : translator.say(
                      "{} is slower from end to end: {:.2f}x the rate of {} ({}); its training steps alone "
                      "run at {:.2f}x the rate.",
                      b, whole.value, a, interval, c.training_ratio->value);
}

std::string speed_words(const Comparison& c, const std::string& a, const std::string& b, const Translator& translator) {
  if (c.different_programs) {
    return translator.say("{} and {} are different programs: their speeds cannot be compared.", a, b);
  }
  if (!c.training_ratio) {
    return translator.say("The throughput of the two runs cannot be compared.");
  }
  const experiment::Ratio& r = *c.training_ratio;
  if (c.may_be_others()) {
    return translator.say(
        "{} ran at {:.2f}x the rate of {}, which proves nothing: other processes used the CPUs meanwhile.", b,
        decisive(c).value, a);
  }
  if (!r.interval) {
    return translator.say("{} ran at {:.2f}x the rate of {}, but there are too few steps to tell.", b, r.value, a);
  }
  if (c.by_whole()) {
    return end_to_end_words(c, a, b, translator);
  }
  const std::string interval = translator.say("95 % interval {:.2f}x to {:.2f}x", r.interval->low, r.interval->high);
  switch (c.training) {
    case experiment::SpeedChange::kFaster:
      return translator.say("{} trains {:.2f}x as fast as {} ({}).", b, r.value, a, interval);
    case experiment::SpeedChange::kSlower:
    case experiment::SpeedChange::kRegression:
      return translator.say("{} is slower: it trains at {:.2f}x the rate of {} ({}).", b, r.value, a, interval);
    default:
      if (r.interval->low >= 1 - kTolerance &&
          r.interval->high <= 1 + kTolerance) {  // a wider one may hide a difference
        return translator.say("Same speed: {} trains at {:.2f}x the rate of {} ({}).", b, r.value, a, interval);
      }
      return translator.say("No difference shown: {} trains at {:.2f}x the rate of {} ({}).", b, r.value, a, interval);
  }
}

}  // namespace

bool Comparison::by_whole() const {
  const auto interval_of = [](const std::optional<experiment::Ratio>& ratio) {
    return ratio && ratio->interval ? *ratio->interval : Interval{1, 1};
  };
  const Interval whole = interval_of(total_ratio);
  const Interval steps = interval_of(training_ratio);
  return (total == experiment::SpeedChange::kFaster && whole.low > steps.high) ||
         (fell(total) && whole.high < steps.low);
}

bool Comparison::may_be_others() const {
  // Another process costs a program more than the CPU time that it takes, because both share caches and memory.
  constexpr double kEffect = 2;
  constexpr double kMost = 2;  // others hardly lengthen the time in which a program waits without them
  if (!pairs.empty() || !training_ratio) {
    return false;
  }
  const double ratio = decisive(*this).value;
  const bool differ = fell(training) || fell(total) || training == experiment::SpeedChange::kFaster ||
                      total == experiment::SpeedChange::kFaster;
  double most = 0;
  for (const Summary* run : {&a, &b}) {
    // Others slow a program down, never speed it up: those beside the faster run make no difference, but they may hide
    // one.
    const bool is_faster = differ && (run == &a) == (ratio < 1);
    const bool counts = run->rough && !is_faster && run->own_cpus.value_or(0) > 0;
    most = std::max(most, counts ? *run->others_cpus / *run->own_cpus : 0);
  }
  return most > 0 && std::max(ratio, 1 / ratio) <= std::min(1 + kEffect * most, kMost);
}

std::string headline(const Comparison& c, const std::string& a, const std::string& b, Language language) {
  const Translator translator{language};
  const auto scaling = scaling_of(c, translator);
  const bool unchanged = c.unchanged && (fell(c.training) || c.training == experiment::SpeedChange::kFaster);
  return speed_words(c, a, b, translator) +
         (unchanged
              ? " " + translator.say("But command, source files, settings, versions and machine are the same: runs "
                                     "of this program differ by as much.")
              : "") +
         (scaling && scaling->efficiency.interval ? " " + scaling_words(*scaling, translator) : "");
}

}  // namespace unidle::report
