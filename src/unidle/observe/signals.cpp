#include "unidle/observe/signals.h"

#include <atomic>
#include <cerrno>

namespace unidle::observe {

namespace {

// What a handler may use: lock-free atomics.
std::atomic<pid_t> target{0};
std::atomic<bool> target_own_group{false};
std::atomic<int> pending{0};
std::atomic<int> last_stop{0};
std::atomic<bool> window{false};

/// Failed writes are for whoever wrote to find, not a reason to die.
bool is_about_writing(int number) { return number == SIGPIPE || number == SIGXFSZ; }

bool stops(int number) { return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT; }

void deliver(int number) {
  const pid_t pid = target;
  if (pid > 0) {
    ::kill(target_own_group ? -pid : pid, number);
  }
}

extern "C" void on_signal(int number, siginfo_t* info, void* /*context*/) {
  const int saved_errno = errno;
  if (number == SIGWINCH) {
    window = true;
  } else {
    if (stops(number)) {
      last_stop = number;
    }
    // The terminal (Ctrl-C) signals its whole foreground group, the command included: once is enough.
    const bool from_terminal = info != nullptr && info->si_code == SI_KERNEL;
    if (target == 0) {
      pending = number;
    } else if (!from_terminal || target_own_group) {
      deliver(number);
    }
  }
  errno = saved_errno;
}

}  // namespace

SignalForwarder::SignalForwarder(bool forward) : forward_(forward) {
  pending = 0;
  last_stop = 0;
  ::sigprocmask(SIG_BLOCK, nullptr, &mask_);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
  }
  hold();
}

void SignalForwarder::hold() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    action.sa_sigaction = on_signal;
    if (is_about_writing(kSignals[i])) {
      action.sa_flags = 0;
      action.sa_handler = SIG_IGN;
    } else if (!forward_ || before_[i].sa_handler == SIG_IGN) {
      continue;
    }
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

SignalForwarder::~SignalForwarder() {
  clear_target();
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

void SignalForwarder::let_go() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (!is_about_writing(kSignals[i])) {
      ::sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
}

void SignalForwarder::set_target(pid_t pid, bool own_group) {
  target_own_group = own_group;
  target = pid;
  if (const int early = pending.exchange(0)) {
    deliver(early);
  }
}

void SignalForwarder::clear_target() { target = 0; }

int SignalForwarder::stop_signal() const { return last_stop; }

void SignalForwarder::restore_in_child() const {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

bool window_changed() { return window.exchange(false); }

}  // namespace unidle::observe
