#include "unidle/report/learning.h"

#include <cmath>
#include <utility>

namespace unidle::report {

namespace {

experiment::Curve metric_points(const std::vector<record::Metric>& metrics, double factor) {
  experiment::Curve points;
  for (const record::Metric& metric : metrics) {
    points.push_back({static_cast<double>(metric.samples) * factor, metric.value});
  }
  return points;
}

}  // namespace

experiment::LearningCurves learning_curves(const RunData& run) {
  experiment::LearningCurves curves;
  double seen = 0;
  for (const record::Step& step : run.steps) {
    const double at = step.samples_before ? static_cast<double>(*step.samples_before) : seen;
    seen = at + static_cast<double>(step.samples);
    if (step.loss) {
      curves.loss.push_back({at * run.rank_factor, *step.loss});
      curves.not_finite += workable(*step.loss) ? 0 : 1;
    }
  }
  for (const auto& [name, metrics] : run.metrics) {
    if (name == "loss") {
      const experiment::Curve late = metric_points(metrics, run.rank_factor);
      curves.loss.insert(curves.loss.end(), late.begin(), late.end());
    } else {
      curves.metrics[name] = experiment::curve_of(metric_points(metrics, 1));
    }
  }
  curves.loss = experiment::curve_of(std::move(curves.loss));
  return curves;
}

}  // namespace unidle::report
