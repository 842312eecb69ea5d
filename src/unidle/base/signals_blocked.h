// Blocks signals in the calling thread for a scope.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace unidle {

/// Signals that arrive meanwhile are delivered at the end of the scope, unless another thread of the process takes
/// them. Threads that start in the scope inherit its mask.
class SignalsBlocked {
 public:
  /// All signals.
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  /// These as well as those that are blocked already.
  explicit SignalsBlocked(std::initializer_list<int> numbers) {
    sigset_t more;
    sigemptyset(&more);
    for (const int number : numbers) {
      sigaddset(&more, number);
    }
    pthread_sigmask(SIG_BLOCK, &more, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// The signals by which a person, a terminal or a scheduler ends a program: blocked while files are half changed.
inline constexpr std::initializer_list<int> kEndingSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

}  // namespace unidle
