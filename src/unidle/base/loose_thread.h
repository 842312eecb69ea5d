// A thread that can be left behind.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

namespace unidle {

/// Runs `work` on a thread of its own. Where it hangs in somebody else's code (a driver's call, the constructor of a
/// library, a file system that does not answer), nothing waits for it for long: what `work` uses it must own or share.
/// The thread blocks all signals: they belong to the main thread. Not thread-safe; an exception of `work` ends it.
class LooseThread {
 public:
  /// Throws std::system_error when there can be no thread.
  explicit LooseThread(std::function<void(std::stop_token)> work);
  /// Ends it without patience.
  ~LooseThread();
  LooseThread(const LooseThread&) = delete;
  LooseThread& operator=(const LooseThread&) = delete;

  /// Requests a stop and waits at most that long (a negative time: without end). False when the thread did not return:
  /// it is left behind.
  bool end(std::int64_t patience_ns);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// True while a thread that was left behind has not returned. Then end the program with end_at_once(): exit() would
/// wait for locks that such a thread may hold (the loader's, within a library's constructor).
bool threads_left_behind();

/// Writes out the standard streams and ends the process without destructors.
[[noreturn]] void end_at_once(int code);

}  // namespace unidle
