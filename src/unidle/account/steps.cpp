#include "unidle/account/steps.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "unidle/base/stats.h"

namespace unidle::account {

namespace {

double seconds_of(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }
double seconds_of(const std::optional<std::int64_t>& ns) { return seconds_of(ns.value_or(0)); }

bool seen_in_full(const record::Step& step) { return step.forward_ns || step.backward_ns; }

Parts reported_parts(const record::Step& step, double step_s) {
  Parts parts{};
  parts[kInput] = seconds_of(step.input_ns);
  parts[kTransfer] = seconds_of(step.transfer_ns);
  parts[kCompute] = seconds_of(step.forward_ns) + seconds_of(step.backward_ns);
  parts[kSync] = seconds_of(step.sync_ns);
  parts[kOptimizer] = seconds_of(step.optimizer_ns);
  parts[kOther] = std::max(0.0, step_s - std::accumulate(parts.begin(), parts.end(), 0.0));
  return parts;
}

/// The timed steps, shortest first, by the time that a step with timed parts spent on what others leave unexplained.
struct TimedSteps {
  std::vector<double> seconds;
  std::vector<Parts> sums;  // of the parts of the first n steps

  void add_all(std::vector<std::pair<double, Parts>> timed) {
    std::ranges::sort(timed, {}, [](const auto& one) { return one.first; });
    sums.push_back(Parts{});
    for (const auto& [step_s, parts] : timed) {
      seconds.push_back(step_s);
      Parts sum = sums.back();
      std::transform(sum.begin(), sum.end(), parts.begin(), sum.begin(), std::plus<>());
      sums.push_back(sum);
    }
  }

  /// The summed parts of the steps from `low` to `high` seconds.
  Parts between(double low, double high) const {
    const auto first = std::ranges::lower_bound(seconds, low) - seconds.begin();
    const auto last = std::ranges::upper_bound(seconds, high) - seconds.begin();
    Parts sum = sums[static_cast<std::size_t>(std::max(first, last))];
    const Parts& before = sums[static_cast<std::size_t>(first)];
    std::transform(sum.begin(), sum.end(), before.begin(), sum.begin(), std::minus<>());
    return sum;
  }
};

double total(const Parts& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }

/// Divides `left` seconds of a step in the proportions of timed steps of about that length. What a step takes beyond
/// the longest timed one is something that happens between steps, and stays unexplained.
Parts divided(const TimedSteps& timed, double left) {
  constexpr double kAlike = 1.5;
  Parts alike = timed.between(left / kAlike, left * kAlike);
  double whole = total(alike);
  double known = left;
  if (whole <= 0) {
    known = std::min(left, timed.seconds.back());
    alike = timed.sums.back();
    whole = total(alike);
  }
  std::ranges::transform(alike, alike.begin(), [&](double part) { return whole > 0 ? part * known / whole : 0; });
  alike[kOther] += left - total(alike);
  return alike;
}

/// Divides the unexplained time of steps whose parts were not all timed like that of steps that were.
void fill_in(const std::vector<record::Step>& steps, std::vector<Period>& periods) {
  const bool input_in_all = std::ranges::any_of(
      steps, [](const record::Step& step) { return !seen_in_full(step) && step.input_ns.has_value(); });
  std::vector<std::pair<double, Parts>> in_full;
  in_full.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (seen_in_full(steps[i])) {
      Parts parts = periods[i].parts;
      parts[kTransfer] = parts[kSync] = 0;  // known for every step
      parts[kInput] = input_in_all ? 0 : parts[kInput];
      in_full.emplace_back(total(parts), parts);
    }
  }
  if (in_full.size() == steps.size()) {
    return;
  }
  if (in_full.empty()) {
    Parts computes{};
    computes[kCompute] = 1e9;  // without timed parts, the rest of a step counts as compute, however long it is
    in_full.emplace_back(computes[kCompute], computes);
  }
  TimedSteps timed;
  timed.add_all(std::move(in_full));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!seen_in_full(steps[i])) {
      const Parts more = divided(timed, std::exchange(periods[i].parts[kOther], 0));
      std::transform(more.begin(), more.end(), periods[i].parts.begin(), periods[i].parts.begin(), std::plus<>());
    }
  }
}

std::array<bool, kPartCount> parts_seen(Steps steps) {
  std::array<bool, kPartCount> seen{};
  for (const record::Step& step : steps) {
    seen[kInput] = seen[kInput] || step.input_ns.has_value();
    seen[kTransfer] = seen[kTransfer] || step.transfer_ns.has_value();
    seen[kSync] = seen[kSync] || step.sync_ns.has_value();
    seen[kOptimizer] = seen[kOptimizer] || step.optimizer_ns.has_value();
  }
  seen[kCompute] = seen[kOther] = true;
  return seen;
}

/// The step's duration less validation and checkpoints in it, or the sum of its parts when its wait lies before its
/// begin.
std::int64_t step_ns(const record::Step& step, const TimeRanges& pauses) {
  const std::int64_t inside = step.duration_ns - pauses.overlap_ns(step.t_ns, step.t_ns + step.duration_ns);
  return std::max(inside, parts_ns(step));
}

}  // namespace

std::vector<Period> make_periods(const Timeline& timeline) {
  std::vector<Period> periods;
  periods.reserve(timeline.steps.size());
  for (std::size_t i = 0; i < timeline.steps.size(); ++i) {
    const record::Step& step = timeline.steps[i];
    const bool last = i + 1 == timeline.steps.size() || i + 1 == timeline.end_counted;
    Period period;
    period.begin_ns = begin_with_input_ns(step);
    period.end_ns = last ? step.t_ns + step.duration_ns : begin_with_input_ns(timeline.steps[i + 1]);
    const std::int64_t paused = timeline.pauses.overlap_ns(period.begin_ns, period.end_ns);
    period.wall_s = seconds_of(std::max<std::int64_t>(0, period.end_ns - period.begin_ns - paused));
    period.step_s = seconds_of(step_ns(step, timeline.pauses));
    period.samples = static_cast<double>(step.samples) * timeline.rank_factor;
    period.parts = reported_parts(step, period.step_s);
    periods.push_back(period);
  }
  fill_in(timeline.steps, periods);
  return periods;
}

std::optional<std::int64_t> largest_batch(Steps steps, std::int64_t from) {
  std::map<std::int64_t, std::size_t> counts;
  for (const record::Step& step : steps) {
    ++counts[step.micro_batches];
  }
  // A step that the program abandons, or that is the first of an epoch, may have others.
  const auto usual = std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
  std::int64_t batch = 0;
  for (const record::Step& step : steps) {
    if (step.index >= from && step.micro_batches == usual->first) {
      batch = std::max(batch, step.samples / std::max<std::int64_t>(1, step.micro_batches));
    }
  }
  return batch > 0 ? std::optional(batch) : std::nullopt;
}

std::optional<StepMeans> step_means(const Timeline& timeline, const std::vector<Period>& periods) {
  const Steps counted = timeline.counted();
  const auto count = static_cast<double>(counted.size());
  double all_s = 0;
  Parts sums{};
  std::vector<double> samples;
  samples.reserve(counted.size());
  for (std::size_t i = timeline.first_counted; i < timeline.end_counted; ++i) {
    all_s += periods[i].step_s;
    samples.push_back(periods[i].samples);
    std::transform(sums.begin(), sums.end(), periods[i].parts.begin(), sums.begin(), std::plus<>());
  }
  if (counted.empty() || all_s <= 0) {
    return std::nullopt;
  }
  StepMeans means;
  means.step_s = all_s / count;
  means.shares = {sums[kInput] / all_s, sums[kTransfer] / all_s,  sums[kCompute] / all_s,
                  sums[kSync] / all_s,  sums[kOptimizer] / all_s, sums[kOther] / all_s};
  std::transform(sums.begin(), sums.end(), means.parts.begin(), [&](double sum) { return sum / count; });
  means.seen = parts_seen(timeline.steps);
  means.samples_per_step = median(samples);
  means.batch_samples = largest_batch(counted);
  double micro_batches = 0;
  std::optional<double> syncs;
  for (const record::Step& step : counted) {
    micro_batches += static_cast<double>(std::max<std::int64_t>(1, step.micro_batches));
    if (step.syncs) {
      syncs = syncs.value_or(0) + static_cast<double>(std::max<std::int64_t>(0, *step.syncs));
    }
  }
  means.micro_batches = micro_batches / count;
  means.syncs_per_step = syncs ? std::optional(*syncs / count) : std::nullopt;
  return means;
}

}  // namespace unidle::account
