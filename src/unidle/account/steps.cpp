#include "unidle/account/steps.h"

#include <algorithm>
#include <functional>
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

/// Divides the unexplained time of steps whose parts were not all timed in the proportions of steps that were.
void fill_in(const std::vector<record::Step>& steps, std::vector<Period>& periods) {
  Parts full{};
  std::size_t count = 0;
  bool input_in_all = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (seen_in_full(steps[i])) {
      ++count;
      std::transform(full.begin(), full.end(), periods[i].parts.begin(), full.begin(), std::plus<>());
    } else {
      input_in_all = input_in_all || steps[i].input_ns.has_value();
    }
  }
  full[kTransfer] = full[kSync] = 0;  // known for every step
  full[kInput] = input_in_all ? 0 : full[kInput];
  if (count == 0) {
    full = {};
    full[kCompute] = 1;  // without timed parts, the rest of a step counts as compute
  }
  const double whole = std::accumulate(full.begin(), full.end(), 0.0);
  if (count == steps.size() || whole <= 0) {
    return;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!seen_in_full(steps[i])) {
      const double left = std::exchange(periods[i].parts[kOther], 0);
      std::transform(full.begin(), full.end(), periods[i].parts.begin(), periods[i].parts.begin(),
                     [&](double share, double known) { return known + left * share / whole; });
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
  std::int64_t batch = 0;
  for (const record::Step& step : steps) {
    if (step.index >= from) {
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
