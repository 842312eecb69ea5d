// A thread that can be abandoned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

namespace unidle {

/// Runs `work` on a thread of its own. If it hangs in foreign code (a driver's call, the constructor of a library, a
/// file system that does not answer), the destructor does not wait for it: `work` must own or share everything it uses.
/// The thread blocks all signals: they belong to the main thread. Not thread-safe; an exception ends `work`.
class AbandonableThread {
 public:
  /// Throws std::system_error when no thread can be created.
  explicit AbandonableThread(std::function<void(std::stop_token)> work);
  /// Ends the thread without waiting long.
  ~AbandonableThread();
  AbandonableThread(const AbandonableThread&) = delete;
  AbandonableThread& operator=(const AbandonableThread&) = delete;

  /// Requests a stop and waits at most that long (negative: without limit). False when the thread did not return: it is
  /// abandoned.
  bool end(std::int64_t patience_ns);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// True while an abandoned thread has not returned. Then end the program with end_at_once(): exit() would wait for
/// locks that the thread may hold (the loader's, inside a library's constructor).
bool has_abandoned_threads();

/// Flushes the standard streams and ends the process without destructors.
[[noreturn]] void end_at_once(int code);

}  // namespace unidle
