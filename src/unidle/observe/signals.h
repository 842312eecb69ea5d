// Forwards signals to the command.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <utility>

namespace unidle::observe {

/// While it lives, signals that other processes send to unidle (INT, TERM, HUP, QUIT, USR1, USR2, ALRM, XCPU, RTMIN ...
/// RTMAX and similar) go to the command, WINCH is noted, PIPE and XFSZ are ignored, and CHLD is set so that a child can
/// be waited for, however unidle was started. Signals that were ignored before (nohup) stay ignored. Signal handlers
/// have no context, so only one instance may live at a time.
class SignalForwarder {
 public:
  /// With `forward` false, handles only PIPE, XFSZ and CHLD.
  explicit SignalForwarder(bool forward);
  ~SignalForwarder();
  SignalForwarder(const SignalForwarder&) = delete;
  SignalForwarder& operator=(const SignalForwarder&) = delete;

  /// From now on, signals go to `pid`; one that arrived earlier is sent now. `own_group`: the command leads a group of
  /// its own, which the terminal's signals do not reach.
  void set_target(pid_t pid, bool own_group);
  /// Drops signals from now on. Call before the command is reaped, because its pid may be reused.
  void clear_target();
  /// Between the two calls, signals end this process as usual, while it waits for a slow reader of its output.
  void stop_forwarding();
  void resume_forwarding();
  /// The last INT, TERM, HUP or QUIT; 0 if there was none.
  int stop_signal() const;
  /// Restores the caller's dispositions and mask in the child, before exec. Async-signal-safe.
  void restore_in_child() const;

 private:
  template <typename Which>
  void restore(Which which) const;

  bool forward_;
  std::array<struct sigaction, NSIG> before_{};
  sigset_t mask_{};
};

/// True once after each change of the window's size.
bool window_changed();

}  // namespace unidle::observe
