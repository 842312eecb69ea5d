// The threads that make samples, of which as many are at work as are wanted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace unidle::data::detail {

/// CPU time of the calling thread; 0 where the system does not tell.
std::int64_t own_cpu_ns();

/// Threads 1 to `most`; signals are left to the threads of the program. Those beyond wanted() sleep. Thread-safe where
/// it says so.
class Crew {
 public:
  /// What thread `thread` does, once: until take_leave() or whatever it waits for tells it to end.
  using Work = std::function<void(int thread)>;

  Crew() = default;
  ~Crew() { stop(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// All are wanted. Throws kOutOfMemory where a thread cannot be started; those before it run.
  void start(int most, Work work);
  /// Wakes those that sleep, and waits until all have ended.
  void stop();

  int wanted() const { return wanted_.load(std::memory_order_relaxed); }
  /// From the thread that starts and stops.
  void want(int threads);
  /// By a thread between two pieces of work: sleeps while it is not wanted. False when it is to end.
  bool stays(int thread);
  /// What all have used since they began. From the thread that starts and stops.
  std::int64_t cpu_ns();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> wanted_{0};
  std::atomic<bool> stopped_{false};
  std::vector<std::jthread> threads_;
};

}  // namespace unidle::data::detail
