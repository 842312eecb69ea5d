#include "unidle/experiment/curve.h"

#include <algorithm>
#include <cmath>

#include "unidle/base/stats.h"

namespace unidle::experiment {

namespace {

constexpr std::size_t kFewestForNoise = 5;

}  // namespace

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

Curve between(const Curve& curve, double from, double to) {
  Curve part;
  std::copy_if(curve.begin(), curve.end(), std::back_inserter(part),
               [&](const CurvePoint& point) { return point.samples >= from && point.samples <= to; });
  return part;
}

std::optional<double> noise(const Curve& curve) {
  constexpr double kMedianOfNormal = 0.6745;  // median absolute value, in standard deviations
  std::vector<double> distances;
  for (std::size_t i = 1; i + 1 < curve.size(); ++i) {
    const CurvePoint& left = curve[i - 1];
    const CurvePoint& right = curve[i + 1];
    if (left.samples == right.samples) {
      continue;
    }
    const double share = (curve[i].samples - left.samples) / (right.samples - left.samples);
    const double distance = curve[i].value - (left.value * (1 - share) + right.value * share);
    distances.push_back(std::abs(distance) / std::sqrt(1 + share * share + (1 - share) * (1 - share)));
  }
  return distances.size() + 2 < kFewestForNoise ? std::nullopt : std::optional(median(distances) / kMedianOfNormal);
}

}  // namespace unidle::experiment
