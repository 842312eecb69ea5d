// What a forked child must not go on with.
#pragma once

#include <cstdint>

#include "unidle/base/handle.h"

namespace unidle::cache::detail {

/// How many forks this process is away from the one that asked first: another number than before means that we are a
/// child. Async-signal-safe, and as fast as reading a variable.
std::uint64_t fork_generation();

/// A descriptor whose locks belong to this process alone: a child closes it as it is forked. Else a child that lives on
/// would hold the locks of a parent that was killed. Thread-safe but for reset().
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
