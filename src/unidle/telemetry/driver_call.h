// Tracks the current driver call, so that a driver that hangs can be abandoned and the call be named.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "unidle/base/abandonable_thread.h"
#include "unidle/base/clock.h"

namespace unidle::telemetry {

/// Longer than any call of a working driver: the first one, which wakes a sleeping device, takes two or three seconds.
constexpr std::int64_t kDriverPatience_ns = 5 * kNsPerSecond;

/// The driver calls of one thread, visible to other threads. Thread-safe.
class DriverCalls {
 public:
  /// Records the calls of this thread in `calls` from now on.
  static void follow(std::shared_ptr<DriverCalls> calls);

  /// Returns how long the current call has taken.
  std::int64_t taken_ns() const;
  /// "the driver does not answer (nvmlInit_v2, 5 s)"
  std::string no_answer() const;

 private:
  friend class DriverCall;
  void now_in(const char* name);

  std::atomic<const char*> name_{nullptr};
  std::atomic<std::int64_t> since_ns_{system_clock().now_ns()};
};

/// One call, for the duration of the scope. `name` must be in static storage.
class DriverCall {
 public:
  explicit DriverCall(const char* name);
  ~DriverCall();
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;
};

/// Runs `work` with a driver on its own thread, which is abandoned when a call hangs: `work` must own or share
/// everything it uses. An exception ends `work`. Not thread-safe.
class DriverWork {
 public:
  explicit DriverWork(std::function<void()> work);

  /// Waits at most `wait_ns`. Returns true when the work has ended, also by an exception.
  bool wait(std::int64_t wait_ns) { return thread_.end(wait_ns); }
  /// Waits until the work ends (true) or a call takes longer than kDriverPatience_ns (false).
  bool wait_patiently();
  /// The message when a call takes longer than that, otherwise empty.
  std::optional<std::string> problem() const;

 private:
  std::shared_ptr<DriverCalls> calls_ = std::make_shared<DriverCalls>();
  AbandonableThread thread_;
};

/// Returns the result of `question`, or nothing when it fails or a driver call hangs; `problem` then says why.
template <typename Answer>
std::optional<Answer> ask_driver(std::function<Answer()> question, std::string& problem) {
  struct Slot {
    std::optional<Answer> answer;
    std::string failure;
  };
  const auto slot = std::make_shared<Slot>();
  DriverWork work([slot, question = std::move(question)] {
    try {
      slot->answer = question();
    } catch (const std::exception& error) {
      slot->failure = error.what();
    }
  });
  if (!work.wait_patiently()) {
    problem = work.problem().value_or("the driver does not answer");
    return std::nullopt;
  }
  problem = slot->failure;
  return std::move(slot->answer);
}

}  // namespace unidle::telemetry
