// Detects forks, and closes what a forked child must not inherit.
#pragma once

#include <cstdint>

#include "unidle/base/handle.h"

namespace unidle::cache::detail {

/// Number of forks between this process and the first caller: a changed number means that this is a child.
/// Async-signal-safe, and as fast as reading a variable.
std::uint64_t fork_generation();

/// A descriptor whose locks belong to this process alone: a child closes it at the fork, since otherwise it would keep
/// the locks of a killed parent. Thread-safe except for reset().
class UnsharedFd {
 public:
  UnsharedFd() = default;
  explicit UnsharedFd(UniqueFd fd);
  ~UnsharedFd();
  UnsharedFd(const UnsharedFd&) = delete;
  UnsharedFd& operator=(const UnsharedFd&) = delete;

  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace unidle::cache::detail
