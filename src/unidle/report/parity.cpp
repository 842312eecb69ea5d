#include "unidle/report/parity.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "unidle/base/characters.h"
#include "unidle/base/stats.h"

namespace unidle::report {

namespace {

constexpr std::size_t kFewestPoints = 5;
constexpr double kWorseShare = 0.05;
constexpr double kWorseOfFall = 0.02;
constexpr double kWorsePsnrDb = 0.1;
constexpr double kWindows = 20;    // smoothing windows in the common range
constexpr std::size_t kGrid = 50;  // common sample counts in the last quarter
// Coarser than this share of the loss, a comparison that finds nothing says nothing.
constexpr double kTooCoarse = 0.25;

Curve sorted(Curve curve) {
  std::stable_sort(curve.begin(), curve.end(), [](const auto& x, const auto& y) { return x.samples < y.samples; });
  return curve;
}

std::size_t points_between(const Curve& curve, double from, double to) {
  return static_cast<std::size_t>(std::count_if(
      curve.begin(), curve.end(), [&](const auto& point) { return point.samples >= from && point.samples <= to; }));
}

/// Deviation of a curve about its smooth between two numbers of samples; nothing for too few points to tell.
std::optional<double> noise(const Curve& raw, const Curve& smoothed, double from, double to) {
  std::vector<double> rests;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i].samples >= from && raw[i].samples <= to) {
      rests.push_back(raw[i].value - smoothed[i].value);
    }
  }
  return rests.size() < kFewestPoints ? std::nullopt : std::optional(standard_deviation(rests));
}

/// The same of a curve that has few points: how far they lie from the line through their neighbours (Gasser, Sroka and
/// Jennen-Steinmetz 1986). The median of them, so that the bend with which a training begins does not count as noise.
std::optional<double> noise_beside_neighbours(const Curve& raw, double from, double to) {
  constexpr double kMedianOfNormal = 0.6745;  // of the absolute value, in standard deviations
  std::vector<double> rests;
  for (std::size_t i = 1; i + 1 < raw.size(); ++i) {
    const CurvePoint& left = raw[i - 1];
    const CurvePoint& right = raw[i + 1];
    if (left.samples < from || right.samples > to || left.samples == right.samples) {
      continue;
    }
    const double share = (raw[i].samples - left.samples) / (right.samples - left.samples);
    const double rest = raw[i].value - (left.value * (1 - share) + right.value * share);
    rests.push_back(std::abs(rest) / std::sqrt(1 + share * share + (1 - share) * (1 - share)));
  }
  return rests.size() + 2 < kFewestPoints ? std::nullopt : std::optional(median(rests) / kMedianOfNormal);
}

/// Where two curves are compared: fifty places in [tail, to], or, of a curve that was read more rarely, its own points
/// there (the last one before when there is none), because between rare points nothing is known.
std::vector<double> places(const Curve& rarer, double from, double tail, double to) {
  std::vector<double> out;
  double last = from;
  for (const CurvePoint& point : rarer) {
    if (point.samples >= tail && point.samples <= to) {
      out.push_back(point.samples);
    } else if (point.samples < tail) {
      last = std::max(last, point.samples);
    }
  }
  if (out.empty()) {
    return {last};
  }
  if (out.size() > kGrid) {
    out.resize(kGrid);
    for (std::size_t i = 0; i < kGrid; ++i) {
      out[i] = tail + (to - tail) * static_cast<double>(i) / (kGrid - 1);
    }
  }
  return out;
}

bool contains(const std::string& name, std::string_view part) { return lower(name).find(part) != std::string::npos; }

Parity not_comparable(std::string name, std::string why) {
  Parity parity;
  parity.name = std::move(name);
  parity.why = std::move(why);
  return parity;
}

ParityVerdict judge_worse(double worse_by, double allowed) {
  if (worse_by > allowed) {
    return ParityVerdict::kWorse;
  }
  return worse_by < -allowed ? ParityVerdict::kBetter : ParityVerdict::kEqual;
}

Parity one_metric(const std::string& name, const Curve& a, const Curve& b) {
  if (a.empty() || b.empty()) {
    return not_comparable(name, "one side has no finite value");
  }
  Parity parity;
  parity.name = name;
  parity.samples = std::min(a.back().samples, b.back().samples);
  if (parity.samples < a.front().samples || parity.samples < b.front().samples) {
    return not_comparable(name, "the runs reported it at no common number of samples");
  }
  parity.a = value_at(a, parity.samples);
  parity.b = value_at(b, parity.samples);
  if (contains(name, "psnr")) {
    parity.judged = true;
    parity.allowed = kWorsePsnrDb;
    // A hair of rounding more, so that a difference of exactly 0.1 dB is not a regression.
    parity.verdict = judge_worse(parity.a - parity.b, kWorsePsnrDb + 1e-9);
  } else if (contains(name, "loss")) {
    parity.judged = true;
    parity.allowed = kWorseShare * std::abs(parity.a);
    parity.verdict = judge_worse(parity.b - parity.a, parity.allowed);
  } else {
    parity.verdict = ParityVerdict::kEqual;
  }
  return parity;
}

}  // namespace

LossCurve loss_curve(const RunData& run) {
  LossCurve out;
  double seen = 0;
  for (const auto& step : run.steps) {
    const double at = step.samples_before ? static_cast<double>(*step.samples_before) : seen;
    seen = at + static_cast<double>(step.samples);
    if (step.loss && workable(*step.loss)) {
      out.points.push_back({at * run.rank_factor, *step.loss});
    } else if (step.loss) {
      ++out.not_finite;
    }
  }
  const auto reported = run.metrics.find("loss");
  if (out.points.empty() && out.not_finite == 0 && reported != run.metrics.end()) {
    out.points = metric_curve(reported->second);
  }
  out.points = sorted(std::move(out.points));
  return out;
}

Curve metric_curve(const std::vector<record::Metric>& metrics) {
  Curve curve;
  for (const auto& metric : metrics) {
    if (workable(metric.value)) {
      curve.push_back({static_cast<double>(metric.samples), metric.value});
    }
  }
  return sorted(std::move(curve));
}

Curve smooth(const Curve& curve, double width) {
  Curve out = curve;
  std::size_t from = 0;
  std::size_t to = 0;
  double sum = 0;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    for (; to < curve.size() && curve[to].samples <= curve[i].samples + width / 2; ++to) {
      sum += curve[to].value;
    }
    for (; from < i && curve[from].samples < curve[i].samples - width / 2; ++from) {
      sum -= curve[from].value;
    }
    out[i].value = sum / static_cast<double>(to - from);
  }
  return out;
}

double value_at(const Curve& curve, double samples) {
  const auto above =
      std::lower_bound(curve.begin(), curve.end(), samples, [](const auto& p, double x) { return p.samples < x; });
  if (above == curve.end()) {
    return curve.back().value;
  }
  if (above == curve.begin() || above->samples <= samples) {
    return above->value;
  }
  const auto& below = *(above - 1);
  const double weight = (samples - below.samples) / (above->samples - below.samples);
  return below.value * (1 - weight) + above->value * weight;
}

namespace {

/// Both curves over the samples that both have seen.
struct Pair {
  const Curve& a;
  const Curve& b;
  double from;
  double to;
};

Parity compare_losses(const Pair& pair) {
  const double width = (pair.to - pair.from) / kWindows;
  const double tail = pair.to - (pair.to - pair.from) / 4;
  const Curve smooth_a = smooth(pair.a, width);
  const Curve smooth_b = smooth(pair.b, width);
  const bool b_is_rarer = points_between(pair.b, pair.from, pair.to) < points_between(pair.a, pair.from, pair.to);
  const std::vector<double> at = places(b_is_rarer ? pair.b : pair.a, pair.from, tail, pair.to);
  Parity parity;
  parity.name = "loss";
  parity.judged = true;
  parity.samples = at.back();
  for (const double samples : at) {
    parity.a += value_at(smooth_a, samples) / static_cast<double>(at.size());
    parity.b += value_at(smooth_b, samples) / static_cast<double>(at.size());
  }
  auto noise_a = noise(pair.a, smooth_a, tail, pair.to);
  auto noise_b = noise(pair.b, smooth_b, tail, pair.to);
  if (!noise_a && !noise_b) {
    noise_a = noise_beside_neighbours(pair.a, pair.from, pair.to);
    noise_b = noise_beside_neighbours(pair.b, pair.from, pair.to);
  }
  const double deviation_a = noise_a.value_or(noise_b.value_or(0));
  const double deviation_b = noise_b.value_or(deviation_a);
  const auto count = [&](const Curve& curve) {
    return static_cast<double>(std::max<std::size_t>(1, points_between(curve, tail, pair.to)));
  };
  const double error = std::sqrt(deviation_a * deviation_a / count(pair.a) + deviation_b * deviation_b / count(pair.b));
  const double fall = std::abs(value_at(smooth_a, pair.from) - parity.a);
  parity.allowed = std::max({kWorseShare * std::abs(parity.a), kWorseOfFall * fall, 3 * error});
  parity.verdict = judge_worse(parity.b - parity.a, parity.allowed);
  if (parity.verdict == ParityVerdict::kEqual && 3 * error > kTooCoarse * std::abs(parity.a) &&
      3 * error > kWorseOfFall * fall) {
    return not_comparable("loss", "the losses are too few or too noisy to show a difference that matters");
  }
  return parity;
}

}  // namespace

Parity loss_parity(const RunData& run_a, const RunData& run_b) {
  const LossCurve a = loss_curve(run_a);
  const LossCurve b = loss_curve(run_b);
  if (b.not_finite > a.not_finite) {
    Parity parity = not_comparable("loss", "B's loss stopped being a finite number");
    parity.verdict = ParityVerdict::kWorse;
    parity.judged = true;
    return parity;
  }
  if (a.points.empty() || b.points.empty()) {
    return not_comparable("loss", "no loss was recorded on both sides");
  }
  const double from = std::max(a.points.front().samples, b.points.front().samples);
  const double to = std::min(a.points.back().samples, b.points.back().samples);
  const std::size_t of_a = from > to ? 0 : points_between(a.points, from, to);
  const std::size_t of_b = from > to ? 0 : points_between(b.points, from, to);
  if (std::min(of_a, of_b) < 1 || std::max(of_a, of_b) < kFewestPoints) {
    return not_comparable("loss", "too few losses at common numbers of samples");
  }
  return compare_losses({a.points, b.points, from, to});
}

std::vector<Parity> metric_parity(const RunData& a, const RunData& b) {
  std::vector<Parity> out;
  for (const auto& [name, values] : a.metrics) {
    const auto other = b.metrics.find(name);
    if (name != "loss" && other != b.metrics.end()) {
      out.push_back(one_metric(name, metric_curve(values), metric_curve(other->second)));
    }
  }
  return out;
}

}  // namespace unidle::report
