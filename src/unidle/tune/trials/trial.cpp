#include "unidle/tune/trials/trial.h"

#include <cmath>
#include <utility>

namespace unidle::tune {

experiment::Learned TrialResult::learned() const {
  experiment::Learned all;
  if (loss) {
    all.loss = experiment::Reading{*loss, loss_error, 0};
  }
  all.loss_fall = loss_fall;
  for (const auto& [name, value] : metrics) {
    all.metrics[name] = experiment::Reading{value, 0, 0};
  }
  return all;
}

void TrialResult::remeasure(const experiment::Measurement& run) {
  rate = run.rate;
  others_cpus = run.others_cpus;
  own_cpus = run.own_cpus;
}

void TrialResult::read_loss(experiment::LossScale& scale) {
  experiment::LearningCurves curves;
  for (const auto& [samples, value] : losses) {
    curves.loss.push_back({static_cast<double>(samples), value});
    curves.not_finite += std::isfinite(value) ? 0 : 1;
  }
  curves.loss = experiment::curve_of(std::move(curves.loss));
  experiment::Learned read;
  scale.read(curves, read);
  if (read.loss) {
    loss = read.loss->value;
    loss_error = read.loss->error;
    loss_fall = read.loss_fall;
  }
}

}  // namespace unidle::tune
