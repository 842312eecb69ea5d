// The worker threads, of which the requested number is active.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace unidle::data::detail {

/// CPU time of the calling thread; 0 when the system does not report it.
std::int64_t own_cpu_ns();

/// Threads 1 to `most`, which block signals. Threads beyond wanted() sleep. Thread-safe where noted.
class WorkerThreads {
 public:
  /// The body of thread `thread`, called once. Returns when stays() or whatever it waits for says to end.
  using Work = std::function<void(int thread)>;

  WorkerThreads() = default;
  ~WorkerThreads() { stop(); }
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  /// All threads are wanted at first. Throws kOutOfMemory when a thread cannot be started; earlier ones keep running.
  void start(int most, Work work);
  /// Wakes sleeping threads and waits until all have ended.
  void stop();

  int wanted() const { return wanted_.load(std::memory_order_relaxed); }
  /// Call from the thread that starts and stops.
  void want(int threads);
  /// Called by a worker between pieces of work: sleeps while the worker is not wanted. Returns false when it must end.
  bool stays(int thread);
  /// CPU time of all threads since they started. Call from the thread that starts and stops.
  std::int64_t cpu_ns();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> wanted_{0};
  std::atomic<bool> stopped_{false};
  std::vector<std::jthread> threads_;
};

}  // namespace unidle::data::detail
