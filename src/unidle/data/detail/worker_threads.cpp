#include "unidle/data/detail/worker_threads.h"

#include <fmt/format.h>
#include <pthread.h>
#include <time.h>

#include <system_error>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/signals_blocked.h"

namespace unidle::data::detail {

namespace {

/// Of a thread that has not been joined.
std::int64_t cpu_ns_of(pthread_t thread) {
  clockid_t clock{};
  timespec spent{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &spent) != 0) {
    return 0;
  }
  return std::int64_t{spent.tv_sec} * kNsPerSecond + spent.tv_nsec;
}

}  // namespace

std::int64_t own_cpu_ns() { return cpu_ns_of(pthread_self()); }

void WorkerThreads::start(int most, Work work) {
  const SignalsBlocked blocked;
  wanted_.store(most, std::memory_order_relaxed);
  try {
    for (int thread = 1; thread <= most; ++thread) {
      threads_.emplace_back([work, thread] {
        pthread_setname_np(pthread_self(), fmt::format("unidle-load-{}", thread).substr(0, 15).c_str());
        work(thread);
      });
    }
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kOutOfMemory, "loader option workers",
                fmt::format("thread {} of {} could not be started: {}", threads_.size() + 1, most, error.what()),
                "use fewer workers");
  }
}

void WorkerThreads::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_all();
  threads_.clear();  // joins
}

void WorkerThreads::want(int threads) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.store(threads, std::memory_order_relaxed);
  }
  changed_.notify_all();
}

bool WorkerThreads::stays(int thread) {
  if (thread > wanted()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_.load(std::memory_order_relaxed) || thread <= wanted(); });
  }
  return !stopped_.load(std::memory_order_relaxed);
}

std::int64_t WorkerThreads::cpu_ns() {
  std::int64_t sum = 0;
  for (std::jthread& thread : threads_) {
    sum += cpu_ns_of(thread.native_handle());
  }
  return sum;
}

}  // namespace unidle::data::detail
