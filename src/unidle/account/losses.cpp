#include "unidle/account/losses.h"

#include <algorithm>

namespace unidle::account {

Curve curve_of(Curve points) {
  std::erase_if(points, [](const CurvePoint& point) { return !is_representable(point.value); });
  std::stable_sort(points.begin(), points.end(), [](const auto& x, const auto& y) { return x.samples < y.samples; });
  return points;
}

LossCurve loss_curve(const RunData& run, const Timeline& timeline) {
  LossCurve out;
  double seen = 0;
  for (const record::Step& step : timeline.steps) {
    const double at = step.samples_before ? static_cast<double>(*step.samples_before) : seen;
    seen = at + static_cast<double>(step.samples);
    if (step.loss && is_representable(*step.loss)) {
      out.points.push_back({at * timeline.rank_factor, *step.loss});
    } else if (step.loss) {
      out.not_finite.push_back(at * timeline.rank_factor);
    }
  }
  if (const auto late = run.metrics.find("loss"); late != run.metrics.end()) {
    for (const record::Metric& loss : late->second) {
      out.points.push_back({static_cast<double>(loss.samples) * timeline.rank_factor, loss.value});
    }
  }
  out.points = curve_of(std::move(out.points));
  return out;
}

Curve metric_curve(const std::vector<record::Metric>& metrics) {
  Curve curve;
  for (const record::Metric& metric : metrics) {
    curve.push_back({static_cast<double>(metric.samples), metric.value});
  }
  return curve_of(std::move(curve));
}

}  // namespace unidle::account
