// Derives the phases of a run from the events in its log.
#pragma once

#include <cstdint>
#include <optional>

#include "unidle/logs/text_log.h"

namespace unidle::logs::detail {

/// Receives events in the order of the lines; an event happens at the last time seen. Time between two events belongs
/// to the phase that the first one started. Not thread-safe.
class Phases {
 public:
  /// Sets the time of the following lines.
  void at(std::int64_t t_ns);
  /// Forgets all measurements: the earlier times were of another kind.
  void restart(std::int64_t t_ns);

  void train();
  void validation_begin();
  void validation_end();
  void checkpoint_begin();
  void checkpoint_end();
  /// The attempt ended before it trained: start-up begins with the next start.
  void start_again();
  /// The scheduler ended the run; it may be started again.
  void ended();
  /// The outermost count is at its first value again. If the last pause was far longer than those before, the run was
  /// not there meanwhile; if the count had not gone on before (`fell_back`), only a very long pause tells that.
  void began_again(bool fell_back);
  /// The counts went on, so that the last pause belongs to the run.
  void went_on() { pause_s_ = 0; }

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
  std::optional<std::int64_t> since_ns_;  // start of the phase
  std::optional<std::int64_t> now_ns_;
  double longest_s_ = 0;  // between two lines, since training began
  double pause_s_ = 0;    // a pause that may lie between two runs
  Phase pause_phase_ = Phase::kTrain;
  LogPhases result_;
};

}  // namespace unidle::logs::detail
