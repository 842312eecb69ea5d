#include "unidle/tune/search/trial_log.h"

#include <cmath>
#include <utility>

#include "unidle/diagnose/policy.h"

namespace unidle::tune {

namespace {

/// CPUs in use by others from which on a trial counts as disturbed.
constexpr double kDisturbingCpus = diagnose::Policy{}.others_cpus;

}  // namespace

TrialLog::TrialLog(TrialRunner& runner, std::stop_token stop, Noise noise, OnTrial on_trial)
    : runner_(runner), stop_(std::move(stop)), noise_(noise), on_trial_(std::move(on_trial)) {}

LoggedTrial TrialLog::measure(const knobs::Settings& changes, const std::string& stage) {
  LoggedTrial trial;
  trial.stage = stage;
  trial.changes = changes;
  trial.result = runner_.run(changes, stop_);
  trial.result.interrupted = trial.result.interrupted || stopped();
  ++runs_;
  ++measured_;
  last_disturbed_ = trial.result.others_cpus.value_or(0) > kDisturbingCpus;
  disturbed_ += last_disturbed_;
  searched_ += stage.starts_with("verify") || stage == "again" || stage == "reference" ? 0 : 1;
  return trial;
}

std::optional<TrialResult> TrialLog::measure_longest(const knobs::Settings& changes) {
  auto result = runner_.run_longest(changes, stop_);
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

bool comparable(const TrialResult& a, const TrialResult& b) {
  return std::abs(a.others_cpus.value_or(0) - b.others_cpus.value_or(0)) <= kDisturbingCpus;
}

}  // namespace unidle::tune
