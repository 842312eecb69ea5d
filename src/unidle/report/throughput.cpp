#include "unidle/report/throughput.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>

namespace unidle::report {

namespace {

constexpr std::size_t kFewestSteps = 8;

struct Block {
  double samples = 0;
  double seconds = 0;
};

std::vector<Block> blocks_of(std::span<const Cycle> steps) {
  const auto size =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(steps.size())) / 1.5));
  std::vector<Block> blocks(steps.size() / size);
  // What does not fill a block is spread over the last one, so that nothing is lost.
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Block& block = blocks[std::min(i / size, blocks.size() - 1)];
    block.samples += steps[i].samples;
    block.seconds += steps[i].wall_s;
  }
  return blocks;
}

/// Those before a profiler's window; all without one.
std::span<const Cycle> unslowed(const RunData& run, const std::vector<Cycle>& all) {
  const auto slowed = [&](const Cycle& cycle) { return run.attached_ns && cycle.end_ns > *run.attached_ns; };
  return {all.begin(), std::find_if(all.begin(), all.end(), slowed)};
}

/// Durations of one kind of span between two times. How many there are is the schedule; how long each takes varies.
std::vector<double> span_seconds(const RunData& run, std::string_view kind, std::int64_t from_ns, std::int64_t to_ns) {
  std::vector<double> found;
  for (const auto& span : run.spans) {
    if (span.kind == kind && span.t_ns >= from_ns && span.t_ns <= to_ns) {
      found.push_back(static_cast<double>(span.duration_ns) / 1e9);
    }
  }
  return found;
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) {
    total += value;
  }
  return total;
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

void set_interval(Rate& rate) {
  if (!rate.draws.empty()) {
    rate.interval = percentile_interval(rate.draws);
  }
}

bool usable(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

Throughput throughput(const RunData& run, const std::vector<Cycle>& all, std::uint64_t seed) {
  Throughput out;
  const std::span<const Cycle> rated = unslowed(run, all);
  out.warm_up = warm_up_steps(rated.size());
  out.steps = rated.size() - out.warm_up;
  if (out.steps == 0) {
    return out;
  }
  const std::vector<Block> blocks = blocks_of(rated.subspan(out.warm_up));
  const std::int64_t from_ns = rated[out.warm_up].begin_ns;
  const std::int64_t to_ns = run.attached_ns.value_or(std::numeric_limits<std::int64_t>::max());
  const std::vector<double> validations = span_seconds(run, "validate", from_ns, to_ns);
  const std::vector<double> checkpoints = span_seconds(run, "checkpoint", from_ns, to_ns);
  Block whole;
  for (const Block& block : blocks) {
    whole.samples += block.samples;
    whole.seconds += block.seconds;
  }
  if (!usable(whole.samples / whole.seconds)) {
    return out;
  }
  Rate training{whole.samples / whole.seconds, {}, {}};
  Rate total{whole.samples / (whole.seconds + sum(validations) + sum(checkpoints)), {}, {}};
  if (out.steps >= kFewestSteps) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::size_t> pick(0, blocks.size() - 1);
    for (int round = 0; round < kBootstrapDraws; ++round) {
      Block drawn;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const Block& block = blocks[pick(random)];
        drawn.samples += block.samples;
        drawn.seconds += block.seconds;
      }
      const double outside = resampled_sum(validations, random) + resampled_sum(checkpoints, random);
      if (usable(drawn.samples / drawn.seconds)) {
        training.draws.push_back(drawn.samples / drawn.seconds);
        total.draws.push_back(drawn.samples / (drawn.seconds + outside));
      }
    }
    set_interval(training);
    set_interval(total);
  }
  out.training = std::move(training);
  out.total = std::move(total);
  return out;
}

}  // namespace unidle::report
