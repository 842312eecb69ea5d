// The phases of a run out of the events that a log tells, as they come.
#pragma once

#include <cstdint>
#include <optional>

#include "unidle/logs/text_log.h"

namespace unidle::logs::detail {

/// Fed with events in the order of the lines; an event belongs to the last time that was seen. Time between two events
/// belongs to the phase that the first one opened. Not thread-safe.
class Phases {
 public:
  /// The time that lines carry from here on.
  void at(std::int64_t t_ns);
  /// Forgets what was measured: the times before were of another kind.
  void restart(std::int64_t t_ns);

  void train();
  void validation_begin();
  void validation_end();
  void checkpoint_begin();
  void checkpoint_end();
  /// What was started came to nothing before it trained: start-up begins with the next start.
  void start_again();
  /// The scheduler has ended the run; it may be started again.
  void ended();

  bool validating() const { return phase_ == Phase::kValidate; }
  bool training_seen() const { return result_.training_seen; }
  /// Seconds of training so far.
  double train_s() const;
  LogPhases result() const;

 private:
  enum class Phase { kStartup, kTrain, kValidate, kCheckpoint, kAway };
  void enter(Phase phase);
  double& seconds_of(Phase phase, LogPhases& phases) const;
  double open_s() const;

  Phase phase_ = Phase::kStartup;
  std::optional<std::int64_t> since_ns_;  // when the phase began
  std::optional<std::int64_t> now_ns_;
  LogPhases result_;
};

}  // namespace unidle::logs::detail
