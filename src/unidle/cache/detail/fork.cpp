#include "unidle/cache/detail/fork.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace unidle::cache::detail {

namespace {

std::atomic<std::uint64_t> forks{0};

struct Watched {
  std::mutex mutex;
  std::vector<int> fds;
};

/// Never destroyed: a fork may happen during exit.
Watched& watched() {
  static auto* const kWatched = new Watched;
  return *kWatched;
}

void before_fork() { watched().mutex.lock(); }
void after_fork_in_parent() { watched().mutex.unlock(); }
void after_fork_in_child() {
  for (const int fd : watched().fds) {
    ::close(fd);
  }
  watched().fds.clear();
  watched().mutex.unlock();
  forks.fetch_add(1, std::memory_order_relaxed);
}

void watch_forks() {
  static const int kRegistered = ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(kRegistered);
}

}  // namespace

std::uint64_t fork_generation() { return forks.load(std::memory_order_relaxed); }

UnsharedFd::UnsharedFd(UniqueFd fd) : fd_(fd.release()) {
  watch_forks();
  const std::scoped_lock lock(watched().mutex);
  watched().fds.push_back(fd_);
}

UnsharedFd::~UnsharedFd() {
  if (fd_ < 0) {
    return;
  }
  const std::scoped_lock lock(watched().mutex);
  auto& fds = watched().fds;
  const auto found = std::find(fds.begin(), fds.end(), fd_);
  if (found != fds.end()) {  // otherwise a child has closed it already
    fds.erase(found);
    ::close(fd_);
  }
}

}  // namespace unidle::cache::detail
