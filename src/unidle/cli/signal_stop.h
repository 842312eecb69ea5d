// Turns Ctrl-C into a stop request, for commands that start other processes.
#pragma once

#include <signal.h>

#include <atomic>
#include <stop_token>
#include <thread>

#include "unidle/base/handle.h"

namespace unidle::cli {

/// While it lives, INT and TERM request a stop, so that child processes are ended properly and no file is left half
/// written. Uses a handler rather than a blocked mask: children would inherit the mask and could not be ended. One at a
/// time.
class SignalStop {
 public:
  /// Throws kIo when no pipe is available.
  SignalStop();
  ~SignalStop();
  SignalStop(const SignalStop&) = delete;
  SignalStop& operator=(const SignalStop&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  /// The signal received; 0 before one.
  int signal() const { return signal_; }

 private:
  void wait();

  UniqueFd read_;
  UniqueFd write_;
  struct sigaction before_int_ {};
  struct sigaction before_term_ {};
  std::stop_source source_;
  std::atomic<int> signal_{0};
  std::thread waiter_;
};

}  // namespace unidle::cli
