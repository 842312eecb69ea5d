#include "unidle/tune/search/trial_log.h"

#include <utility>

namespace unidle::tune {

TrialLog::TrialLog(TrialRunner& runner, std::stop_token stop, Noise noise, OnTrial on_trial)
    : runner_(runner), stop_(std::move(stop)), noise_(noise), on_trial_(std::move(on_trial)) {}

LoggedTrial TrialLog::measure(const knobs::Settings& changes, const std::string& stage, double limit_s) {
  LoggedTrial trial;
  trial.stage = stage;
  trial.changes = changes;
  trial.result = runner_.run(changes, limit_s, stop_);
  trial.result.interrupted = trial.result.interrupted || stopped();
  trial.own_rate = trial.result.rate;
  ++runs_;
  ++measured_;
  last_disturbed_ = experiment::is_disturbed(trial.result.measurement());
  disturbed_ += last_disturbed_;
  searched_ += stage.starts_with("verify") || stage == "again" || stage == "reference" ? 0 : 1;
  return trial;
}

std::optional<TrialResult> TrialLog::measure_longest(const knobs::Settings& changes, double limit_s) {
  auto result = runner_.run_longest(changes, limit_s, stop_);
  if (!result || result->interrupted || stopped()) {
    return std::nullopt;
  }
  ++runs_;
  return result;
}

void TrialLog::add(LoggedTrial trial) {
  trial.index = static_cast<int>(trials_.size()) + 1;
  trials_.push_back(std::move(trial));
  if (on_trial_) {
    on_trial_(trials_.back());
  }
}

}  // namespace unidle::tune
