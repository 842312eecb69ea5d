// Which call of a driver is under way: a driver that hangs is left behind, and its user is told where it does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/loose_thread.h"

namespace unidle::telemetry {

/// No call of a driver that works takes longer: the first one, which wakes a sleeping device, takes two or three
/// seconds.
constexpr std::int64_t kDriverPatience_ns = 5 * kNsPerSecond;

/// The calls of one thread, for other threads to see. Thread-safe.
class DriverCalls {
 public:
  /// From now on the calls that this thread makes are told to `calls`.
  static void follow(std::shared_ptr<DriverCalls> calls);

  /// How long the call under way has taken.
  std::int64_t taken_ns() const;
  /// "the driver does not answer (nvmlInit_v2, 5 s)"
  std::string no_answer() const;

 private:
  friend class DriverCall;
  void now_in(const char* name);

  std::atomic<const char*> name_{nullptr};
  std::atomic<std::int64_t> since_ns_{system_clock().now_ns()};
};

/// One call, from here to the end of the scope. `name` is in static storage.
class DriverCall {
 public:
  explicit DriverCall(const char* name);
  ~DriverCall();
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;
};

/// Work with a driver, on a thread of its own that is left behind when a call does not come back: what `work` uses it
/// must own or share. Not thread-safe; an exception of `work` ends it.
class DriverWork {
 public:
  explicit DriverWork(std::function<void()> work);

  /// Waits at most that long. True when the work is over, one way or the other.
  bool wait(std::int64_t wait_ns) { return thread_.end(wait_ns); }
  /// Waits until it is over (true), or a call has taken longer than kDriverPatience_ns (false).
  bool wait_patiently();
  /// What to say when a call has taken longer than that; nothing as long as there is hope.
  std::optional<std::string> problem() const;

 private:
  std::shared_ptr<DriverCalls> calls_ = std::make_shared<DriverCalls>();
  LooseThread thread_;
};

/// What `question` gives; nothing when a call of it hangs, or when it fails. Then `problem` says so.
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
