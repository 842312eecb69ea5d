// Signals that arrive for us and are meant for the command.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <utility>

namespace unidle::observe {

/// While it lives, what others send to us (INT, TERM, HUP, QUIT, USR1, USR2, ALRM, XCPU, RTMIN ... RTMAX and the like)
/// goes to the command, WINCH is noted, PIPE and XFSZ are ignored, and CHLD is as it must be to wait for a child,
/// however we were started. What was ignored before (nohup) stays ignored. Signal handlers have no context, so one
/// object may live at a time.
class SignalForwarder {
 public:
  /// With `forward` false only PIPE, XFSZ and CHLD are handled.
  explicit SignalForwarder(bool forward);
  ~SignalForwarder();
  SignalForwarder(const SignalForwarder&) = delete;
  SignalForwarder& operator=(const SignalForwarder&) = delete;

  /// From now on signals go to `pid`; one that came earlier is delivered now. `own_group`: the command leads a group
  /// of its own, so what the terminal sends to ours does not reach it by itself.
  void set_target(pid_t pid, bool own_group);
  /// Call before the command is reaped: its pid may be another process's soon. Signals are swallowed from then on.
  void clear_target();
  /// Between the two calls signals end this process, as usual, while it waits for a slow reader of its output.
  void stop_forwarding();
  void resume_forwarding();
  /// The last INT, TERM, HUP or QUIT that arrived; 0 when none did.
  int stop_signal() const;
  /// In the child, before exec: dispositions and mask as our own caller had set them. Async-signal-safe.
  void restore_in_child() const;

 private:
  template <typename Which>
  void restore(Which which) const;

  bool forward_;
  std::array<struct sigaction, NSIG> before_{};
  sigset_t mask_{};
};

/// True once after the window changed its size.
bool window_changed();

}  // namespace unidle::observe
