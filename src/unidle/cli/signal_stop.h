// Ctrl-C as a stop, for commands that start others.
#pragma once

#include <signal.h>

#include <atomic>
#include <stop_token>
#include <thread>

#include "unidle/base/handle.h"

namespace unidle::cli {

/// Turns INT and TERM into a stop while it lives, so that what was started is ended properly and nothing is left half
/// written. By a handler, not by a blocked mask: children would inherit the mask and could not be ended. One at a time.
class SignalStop {
 public:
  /// Throws kIo when there is no pipe to be had.
  SignalStop();
  ~SignalStop();
  SignalStop(const SignalStop&) = delete;
  SignalStop& operator=(const SignalStop&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  /// The one that came; 0 before.
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
