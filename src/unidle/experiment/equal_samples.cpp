#include "unidle/experiment/equal_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "unidle/base/stats.h"

namespace unidle::experiment {

namespace {

/// Fewer losses are not a curve.
constexpr std::size_t kFewestPoints = 5;
/// With fewer losses in the last quarter, the last half is used.
constexpr std::size_t kFewInTail = 8;
/// Losses at equal samples; fewer give no standard error.
constexpr std::size_t kFewestInCommon = 4;
constexpr double kFewestInWindow = 3;
constexpr double kWindows = 20;    // smoothing windows in the common range
constexpr std::size_t kGrid = 50;  // points at which smoothed curves are compared

constexpr const char* kTooFew = "too few losses at common numbers of samples";

std::size_t points_from(const Curve& curve, double from) {
  return static_cast<std::size_t>(
      std::count_if(curve.begin(), curve.end(), [&](const auto& point) { return point.samples >= from; }));
}

/// Where to compare two curves: at the points of the sparser one from `tail` on, or at its last point before. Between
/// its points nothing is known.
std::vector<double> places_of(const Curve& rarer, double tail) {
  std::vector<double> places;
  for (const CurvePoint& point : rarer) {
    if (point.samples >= tail) {
      places.push_back(point.samples);
    }
  }
  if (places.empty()) {
    places.push_back(rarer.back().samples);
  }
  return places;
}

bool has(const Curve& curve, double samples) {
  return std::binary_search(curve.begin(), curve.end(), CurvePoint{samples, 0},
                            [](const CurvePoint& x, const CurvePoint& y) { return x.samples < y.samples; });
}

/// Compares losses directly at equal samples.
EqualSamples one_by_one(const Curve& a, const Curve& b, const std::vector<double>& places) {
  EqualSamples found;
  std::vector<double> differences;
  for (const double samples : places) {
    found.a += value_at(a, samples) / static_cast<double>(places.size());
    found.b += value_at(b, samples) / static_cast<double>(places.size());
    differences.push_back(value_at(b, samples) - value_at(a, samples));
  }
  found.error = standard_deviation(differences) / std::sqrt(static_cast<double>(differences.size()));
  return found;
}

/// Standard deviation of a curve around its smoothed version from `tail` on. A window with few points follows the
/// noise; then, and with few points from `tail` on, the noise of the whole curve is used. Nothing for too few points.
std::optional<double> scatter(const Curve& raw, const Curve& smoothed, double tail, double width) {
  std::vector<double> rests;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i].samples >= tail) {
      rests.push_back(raw[i].value - smoothed[i].value);
    }
  }
  const double in_window = static_cast<double>(rests.size()) * width /
                           std::max(width, raw.back().samples - std::max(tail, raw.front().samples));
  if (in_window < kFewestInWindow) {
    return noise(rests.size() < kFewestPoints ? raw : between(raw, tail, raw.back().samples));
  }
  return standard_deviation(rests) / std::sqrt(1 - 1 / in_window);
}

/// Compares the smoothed curves.
EqualSamples smoothed(const Curve& a, const Curve& b, std::vector<double> places, double tail, double width) {
  EqualSamples found;
  if (places.size() > kGrid) {
    const double to = places.back();
    places.resize(kGrid);
    for (std::size_t i = 0; i < kGrid; ++i) {
      places[i] = tail + (to - tail) * static_cast<double>(i) / (kGrid - 1);
    }
  }
  const Curve smooth_a = smooth(a, width);
  const Curve smooth_b = smooth(b, width);
  for (const double samples : places) {
    found.a += value_at(smooth_a, samples) / static_cast<double>(places.size());
    found.b += value_at(smooth_b, samples) / static_cast<double>(places.size());
  }
  const auto of_a = scatter(a, smooth_a, tail, width);
  const auto of_b = scatter(b, smooth_b, tail, width);
  const double deviation_a = of_a.value_or(of_b.value_or(0));
  const double deviation_b = of_b.value_or(deviation_a);
  const auto count = [&](const Curve& curve) {
    return std::sqrt(static_cast<double>(std::max<std::size_t>(1, points_from(curve, tail))));
  };
  found.error = std::hypot(deviation_a / count(a), deviation_b / count(b));
  return found;
}

double last_of(const Curve& curve) { return curve.empty() ? std::numeric_limits<double>::max() : curve.back().samples; }

/// Reads the metric of each run at the last samples that all of them reached; skips runs without a value until then.
void read_metric(const std::string& name, const std::vector<LearningCurves>& runs, std::vector<Learned>& learned) {
  double samples = std::numeric_limits<double>::max();
  for (const LearningCurves& run : runs) {
    const auto found = run.metrics.find(name);
    samples = found == run.metrics.end() ? samples : std::min(samples, last_of(found->second));
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto found = runs[i].metrics.find(name);
    if (found == runs[i].metrics.end()) {
      continue;
    }
    const Curve& curve = found->second;
    if (!curve.empty() && curve.front().samples <= samples) {
      learned[i].metrics[name] = {value_at(curve, samples), noise(curve).value_or(0), samples};
    }
  }
}

}  // namespace

std::optional<EqualSamples> at_equal_samples(const Curve& all_a, const Curve& all_b) {
  if (all_a.empty() || all_b.empty()) {
    return std::nullopt;
  }
  const double from = std::max(all_a.front().samples, all_b.front().samples);
  const double to = std::min(all_a.back().samples, all_b.back().samples);
  if (!(to > from)) {  // also for a program whose steps count no samples
    return std::nullopt;
  }
  const Curve a = between(all_a, from, to);
  const Curve b = between(all_b, from, to);
  if (std::min(a.size(), b.size()) < 1 || std::max(a.size(), b.size()) < kFewestPoints) {
    return std::nullopt;
  }
  const Curve& rarer = b.size() < a.size() ? b : a;
  double tail = to - (to - from) / 4;
  tail = points_from(rarer, tail) < kFewInTail ? to - (to - from) / 2 : tail;
  const std::vector<double> places = places_of(rarer, tail);
  std::vector<double> common = places;
  std::erase_if(common, [&](double samples) { return !has(a, samples) || !has(b, samples); });

  const double width = (to - from) / kWindows;
  EqualSamples found = smoothed(a, b, places, tail, width);
  if (common.size() >= kFewestInCommon) {
    const EqualSamples direct = one_by_one(a, b, common);
    found = direct.error <= found.error ? direct : found;
  }
  found.samples = places.back();
  found.fall = std::abs(value_at(smooth(a, width), from) - found.a);
  return found;
}

void LossScale::read(const LearningCurves& run, Learned& learned) {
  if (first_.loss.empty()) {
    first_ = run;
  }
  if (run.not_finite > first_.not_finite) {
    learned.loss = Reading{std::numeric_limits<double>::quiet_NaN(), 0, last_of(run.loss)};
    return;
  }
  auto found = at_equal_samples(first_.loss, run.loss);
  if (!found) {
    learned.why_no_loss = first_.loss.empty() || run.loss.empty() ? "no loss was recorded on both sides" : kTooFew;
    return;
  }
  level_ = level_.value_or(found->a);
  const double factor = found->a * *level_ > 0 ? *level_ / found->a : 1;
  learned.loss = Reading{found->b * factor, found->error * factor, found->samples};
  learned.loss_fall = found->fall * factor;
}

std::vector<Learned> learned_by(const std::vector<LearningCurves>& runs) {
  double to = std::numeric_limits<double>::max();
  for (const LearningCurves& run : runs) {
    to = std::min(to, last_of(run.loss));
  }
  LearningCurves first = runs.front();
  first.loss = between(first.loss, 0, to);
  LossScale scale(std::move(first));
  std::vector<Learned> learned(runs.size());
  for (std::size_t i = runs.size(); i-- > 0;) {  // the first run last: it takes the level of the others
    scale.read(runs[i], learned[i]);
  }
  for (const auto& [name, curve] : runs.front().metrics) {
    read_metric(name, runs, learned);
  }
  return learned;
}

}  // namespace unidle::experiment
