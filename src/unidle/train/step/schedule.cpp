#include "unidle/train/step/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "unidle/train/config.h"

namespace unidle::train {

namespace {

Schedule::Kind kind_of(const std::string& name) {
  using enum Schedule::Kind;
  return name == "cosine" ? kCosine : name == "step" ? kStep : name == "one-cycle" ? kOneCycle : kConstant;
}

/// Interpolates from `from` to `to` along half a cosine, at the fraction `share`.
double anneal(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}

}  // namespace

Schedule::Schedule(const Config& config, std::int64_t total_steps)
    : options_{.kind = kind_of(config.text("optimizer.schedule")),
               .rate = config.real("optimizer.lr"),
               .warmup_steps = config.integer("optimizer.warmup_steps"),
               .total_steps = total_steps,
               .decay_steps = config.integer("optimizer.decay_steps"),
               .decay_factor = config.real("optimizer.decay_factor")} {}

double Schedule::rate(std::int64_t step) const {
  const Options& o = options_;
  if (step < o.warmup_steps) {
    return o.rate * static_cast<double>(step + 1) / static_cast<double>(o.warmup_steps);
  }
  const std::int64_t after = step - o.warmup_steps;
  switch (o.kind) {
    case Kind::kConstant: break;
    case Kind::kCosine: {
      const auto length = static_cast<double>(std::max<std::int64_t>(1, o.total_steps - o.warmup_steps));
      return anneal(o.rate, 0, std::min(1.0, static_cast<double>(after) / length));
    }
    case Kind::kStep: return o.rate * std::pow(o.decay_factor, static_cast<double>(after / o.decay_steps));
    case Kind::kOneCycle: return one_cycle(static_cast<double>(step));
  }
  return o.rate;
}

double Schedule::one_cycle(double step) const {
  constexpr double kRising = 0.3;
  constexpr double kFirstDivisor = 25;
  constexpr double kLastDivisor = 1e4;  // relative to the first rate
  const double first = options_.rate / kFirstDivisor;
  const auto total = static_cast<double>(options_.total_steps);
  const double top = kRising * total - 1;
  const double end = total - 1;
  if (step <= top) {
    return anneal(first, options_.rate, top > 0 ? step / top : 1);
  }
  return anneal(options_.rate, first / kLastDivisor, end > top ? std::min(1.0, (step - top) / (end - top)) : 1);
}

}  // namespace unidle::train
