#include "unidle/report/learning.h"

namespace unidle::report {

experiment::LearningCurves learning_curves(const account::RunData& run) {
  const account::LossCurve losses = account::loss_curve(run, account::make_timeline(run));
  experiment::LearningCurves curves{losses.points, losses.not_finite.size(), {}};
  for (const auto& [name, metrics] : run.metrics) {
    if (name != "loss") {
      curves.metrics[name] = account::metric_curve(metrics);
    }
  }
  return curves;
}

}  // namespace unidle::report
