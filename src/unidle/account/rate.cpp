#include "unidle/account/rate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <span>

namespace unidle::account {

namespace {

constexpr std::size_t kFewestForInterval = 8;
constexpr int kRounds = 2000;

struct Block {
  double samples = 0;
  double seconds = 0;
};

std::span<const Period> rated(const Timeline& timeline, const std::vector<Period>& periods) {
  return std::span(periods).subspan(timeline.first_counted, timeline.rated_steps());
}

std::vector<Block> blocks_of(std::span<const Period> steps) {
  const auto size =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(steps.size())) / 1.5));
  std::vector<Block> blocks(steps.size() / size);
  // The last block also takes the steps that do not fill a block.
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Block& block = blocks[std::min(i / size, blocks.size() - 1)];
    block.samples += steps[i].samples;
    block.seconds += steps[i].wall_s;
  }
  return blocks;
}

/// Durations of the pauses that belong to counted steps: those between them, and those after them until the end of the
/// run, unless a profiler's window slows these.
std::vector<double> pauses_of(const TimeRanges& pauses, const Timeline& timeline, std::span<const Period> steps) {
  const std::int64_t end_ns = timeline.window ? steps.back().end_ns : std::numeric_limits<std::int64_t>::max();
  std::vector<double> found;
  for (const TimeRange& pause : pauses.all()) {
    if (pause.begin_ns >= steps.front().begin_ns && pause.begin_ns < end_ns) {
      found.push_back(static_cast<double>(pause.end_ns - pause.begin_ns) * 1e-9);
    }
  }
  return found;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

Block sum(std::span<const Period> steps) {
  Block all;
  for (const Period& step : steps) {
    all.samples += step.samples;
    all.seconds += step.wall_s;
  }
  return all;
}

double resampled_sum(const std::vector<double>& values, std::mt19937_64& random) {
  if (values.empty()) {
    return 0;
  }
  std::uniform_int_distribution<std::size_t> pick(0, values.size() - 1);
  double total = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    total += values[pick(random)];
  }
  return total;
}

bool usable(double value) { return std::isfinite(value) && value > 0; }

std::optional<double> per_second(double count, double seconds) {
  return usable(count / seconds) ? std::optional(count / seconds) : std::nullopt;
}

Rate with_interval(double value, std::vector<double> draws) {
  Rate rate{value, std::nullopt, std::move(draws)};
  if (!rate.draws.empty()) {
    rate.interval = Interval{quantile(rate.draws, 0.025), quantile(rate.draws, 0.975)};
  }
  return rate;
}

}  // namespace

Rates rates(const Timeline& timeline, const std::vector<Period>& periods) {
  const std::span<const Period> steps = rated(timeline, periods);
  if (steps.empty()) {
    return {};
  }
  const Block all = sum(steps);
  const double paused_s =
      sum(pauses_of(timeline.validate, timeline, steps)) + sum(pauses_of(timeline.checkpoint, timeline, steps));
  return {per_second(all.samples, all.seconds), per_second(all.samples, all.seconds + paused_s),
          per_second(static_cast<double>(steps.size()), all.seconds),
          per_second(static_cast<double>(steps.size()), all.seconds + paused_s)};
}

Throughput throughput(const Timeline& timeline, const std::vector<Period>& periods, std::uint64_t seed) {
  const std::span<const Period> steps = rated(timeline, periods);
  const Rates values = rates(timeline, periods);
  Throughput out;
  out.steps = steps.size();
  out.warm_up = timeline.first_counted;
  if (!values.training || !values.total) {
    return out;
  }
  std::vector<double> training;
  std::vector<double> total;
  if (steps.size() >= kFewestForInterval) {
    const std::vector<Block> blocks = blocks_of(steps);
    const std::vector<double> validations = pauses_of(timeline.validate, timeline, steps);
    const std::vector<double> checkpoints = pauses_of(timeline.checkpoint, timeline, steps);
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::size_t> pick(0, blocks.size() - 1);
    for (int round = 0; round < kRounds; ++round) {
      Block drawn;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const Block& block = blocks[pick(random)];
        drawn.samples += block.samples;
        drawn.seconds += block.seconds;
      }
      const double outside = resampled_sum(validations, random) + resampled_sum(checkpoints, random);
      if (usable(drawn.samples / drawn.seconds)) {
        training.push_back(drawn.samples / drawn.seconds);
        total.push_back(drawn.samples / (drawn.seconds + outside));
      }
    }
  }
  out.training = with_interval(*values.training, std::move(training));
  out.total = with_interval(*values.total, std::move(total));
  return out;
}

namespace {

std::optional<double> input_share_of(const std::optional<StepMeans>& means) {
  return means && means->seen[kInput] ? std::optional(means->shares.input) : std::nullopt;
}

Timeline recent_timeline(const RunData& run) {
  Timeline timeline = make_timeline(run);
  timeline.first_counted = 0;  // a running program warmed up long ago; if not, its present rate is what is wanted
  return timeline;
}

std::vector<RecentProcess> recent_processes(const std::vector<record::Step>& steps) {
  std::map<std::int64_t, RunData> runs;
  for (const record::Step& step : steps) {
    runs[step.process].steps.push_back(step);
  }
  std::vector<RecentProcess> processes;
  for (const auto& [process, run] : runs) {
    const Timeline timeline = recent_timeline(run);
    processes.push_back({process, input_share_of(step_means(timeline, make_periods(timeline)))});
  }
  return processes.size() > 1 ? processes : std::vector<RecentProcess>();
}

}  // namespace

RecentRates recent_rates(const std::vector<record::Step>& last, double window_s) {
  RunData run;
  run.steps = last;
  tidy(run);
  std::int64_t end_ns = 0;
  for (const record::Step& step : run.steps) {
    end_ns = std::max(end_ns, step.t_ns + step.duration_ns);
  }
  const double from_ns = static_cast<double>(end_ns) - window_s * 1e9;
  std::erase_if(run.steps,
                [&](const record::Step& step) { return static_cast<double>(step.t_ns + step.duration_ns) < from_ns; });
  const Timeline timeline = recent_timeline(run);
  const std::vector<Period> periods = make_periods(timeline);
  const Rates now = rates(timeline, periods);
  return {now.steps_per_s, now.training, input_share_of(step_means(timeline, periods)), recent_processes(run.steps)};
}

}  // namespace unidle::account
