#include "unidle/logs/detail/phases.h"

#include <algorithm>
#include <utility>

namespace unidle::logs::detail {

namespace {

/// A pause between two runs in one log is at least so long, and so many times as long as any before.
constexpr double kShortestPauseS = 600;
constexpr double kFarLonger = 5;
constexpr double kLongPauseS = 6 * 3600;

}  // namespace

void Phases::at(std::int64_t t_ns) {
  const double gap_s = now_ns_ && result_.training_seen ? static_cast<double>(t_ns - *now_ns_) * 1e-9 : 0;
  if (gap_s > kShortestPauseS && longest_s_ > 0 && gap_s > kFarLonger * longest_s_) {
    pause_s_ = gap_s;
    pause_phase_ = phase_;
  } else {
    longest_s_ = std::max(longest_s_, gap_s);
  }
  now_ns_ = std::max(now_ns_.value_or(t_ns), t_ns);  // lines of several threads may be slightly out of order
  since_ns_ = since_ns_.value_or(t_ns);
}

void Phases::restart(std::int64_t t_ns) {
  const bool training = result_.training_seen;
  result_ = {};
  result_.training_seen = training;
  now_ns_ = t_ns;
  since_ns_ = t_ns;
  result_.loop_begin_ns = training ? now_ns_ : std::nullopt;
}

double& Phases::seconds_of(Phase phase, LogPhases& phases) const {
  switch (phase) {
    case Phase::kTrain: return phases.train_s;
    case Phase::kValidate: return phases.validate_s;
    case Phase::kCheckpoint: return phases.checkpoint_s;
    case Phase::kAway: return phases.away_s;
    case Phase::kStartup: break;
  }
  return phases.startup_s;
}

double Phases::open_s() const {
  return since_ns_ && now_ns_ ? static_cast<double>(std::max<std::int64_t>(0, *now_ns_ - *since_ns_)) * 1e-9 : 0;
}

double Phases::train_s() const { return result_.train_s + (phase_ == Phase::kTrain ? open_s() : 0); }

void Phases::enter(Phase phase) {
  seconds_of(phase_, result_) += open_s();
  since_ns_ = now_ns_;
  phase_ = phase;
  if (phase == Phase::kTrain && !result_.training_seen) {
    result_.training_seen = true;
    result_.loop_begin_ns = now_ns_;
  }
  result_.loop_end_ns = result_.training_seen ? now_ns_ : std::nullopt;
}

void Phases::train() { enter(Phase::kTrain); }

void Phases::validation_begin() {
  if (phase_ != Phase::kValidate) {
    enter(Phase::kValidate);
    ++result_.validations;
  }
}

void Phases::validation_end() {
  if (phase_ == Phase::kValidate) {
    enter(result_.training_seen ? Phase::kTrain : Phase::kStartup);
  }
}

void Phases::checkpoint_begin() {
  if (result_.training_seen && phase_ != Phase::kCheckpoint) {
    enter(Phase::kCheckpoint);
    ++result_.checkpoints;
  }
}

void Phases::checkpoint_end() {
  if (phase_ == Phase::kCheckpoint) {
    enter(Phase::kTrain);
  }
}

void Phases::start_again() {
  if (result_.training_seen) {
    return;
  }
  result_.away_s += std::exchange(result_.startup_s, 0) + open_s();
  since_ns_ = now_ns_;
}

void Phases::ended() { enter(Phase::kAway); }

void Phases::began_again(bool fell_back) {
  if (fell_back || pause_s_ > kLongPauseS) {
    seconds_of(pause_phase_, result_) -= pause_s_;
    result_.away_s += pause_s_;
  }
  pause_s_ = 0;
}

LogPhases Phases::result() const {
  LogPhases result = result_;
  seconds_of(phase_, result) += open_s();
  return result;
}

}  // namespace unidle::logs::detail
