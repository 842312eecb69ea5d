#include "unidle/observe/signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace unidle::observe {

namespace {

// Handlers may use lock-free atomics only.
std::atomic<pid_t> target{0};
std::atomic<bool> target_own_group{false};
std::atomic<bool> leads_session{false};
std::atomic<int> pending{0};
std::atomic<int> last_stop{0};
std::atomic<bool> window{false};

enum class Kind { kLeft, kForwarded, kWindow, kWriting, kChild };

/// Not handled: signals that cannot be caught, faults of unidle itself, job control (meant for the whole group) and
/// signals that are ignored by default.
Kind kind_of(int number) {
  switch (number) {
    case SIGWINCH: return Kind::kWindow;
    case SIGPIPE:
    case SIGXFSZ: return Kind::kWriting;
    case SIGCHLD: return Kind::kChild;
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
    case SIGUSR1:
    case SIGUSR2:
    case SIGALRM:
    case SIGVTALRM:
    case SIGPROF:
    case SIGXCPU:
    case SIGIO:
    case SIGPWR: return Kind::kForwarded;
    default: return number >= SIGRTMIN && number <= SIGRTMAX ? Kind::kForwarded : Kind::kLeft;
  }
}

/// Calls `work` with the number of each handled signal.
template <typename Work>
void for_each_handled(Work work) {
  for (int number = 1; number < NSIG; ++number) {
    if (kind_of(number) != Kind::kLeft) {
      work(number);
    }
  }
}

bool stops(int number) { return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT; }

void deliver(int number) {
  const pid_t pid = target;
  if (pid > 0) {
    ::kill(target_own_group ? -pid : pid, number);
  }
}

/// What the terminal sends (Ctrl-C) goes to its whole foreground group, including the command: do not send it twice.
/// Hang-up goes to the session leader only. A CPU limit that unidle itself reached (XCPU) does not concern the command.
bool is_ours_alone(int number) {
  return number != SIGXCPU && (target_own_group || (number == SIGHUP && leads_session));
}

extern "C" void on_signal(int number, siginfo_t* info, void* /*context*/) {
  const int saved_errno = errno;
  if (number == SIGWINCH) {
    window = true;
  } else {
    if (stops(number)) {
      last_stop = number;
    }
    const bool from_kernel = info != nullptr && info->si_code == SI_KERNEL;
    if (target == 0) {
      pending = number;
    } else if (!from_kernel || is_ours_alone(number)) {
      deliver(number);
    }
  }
  errno = saved_errno;
}

}  // namespace

SignalForwarder::SignalForwarder(bool forward) : forward_(forward) {
  pending = 0;
  last_stop = 0;
  leads_session = ::getsid(0) == ::getpid();
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask_);
  for_each_handled([this](int number) { ::sigaction(number, nullptr, &before_[static_cast<std::size_t>(number)]); });
  resume_forwarding();
}

void SignalForwarder::resume_forwarding() {
  sigset_t forwarded;
  sigemptyset(&forwarded);
  for_each_handled([&](int number) {
    const Kind kind = kind_of(number);
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    if (kind == Kind::kWriting) {
      action.sa_handler = SIG_IGN;  // report failed writes to their caller instead of ending the process
    } else if (kind == Kind::kChild) {
      action.sa_handler = SIG_DFL;
    } else if (forward_ && before_[static_cast<std::size_t>(number)].sa_handler != SIG_IGN) {
      action.sa_flags = SA_RESTART | SA_SIGINFO;
      action.sa_sigaction = on_signal;
      sigaddset(&forwarded, number);
    } else {
      return;
    }
    ::sigaction(number, &action, nullptr);
  });
  // unidle may have been started with these signals blocked, and could not forward them then. The command keeps the
  // original mask.
  ::pthread_sigmask(SIG_UNBLOCK, &forwarded, nullptr);
}

SignalForwarder::~SignalForwarder() {
  clear_target();
  if (forward_) {
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  restore([](Kind) { return true; });
}

void SignalForwarder::stop_forwarding() {
  restore([](Kind kind) { return kind == Kind::kForwarded || kind == Kind::kWindow; });
}

template <typename Which>
void SignalForwarder::restore(Which which) const {
  for_each_handled([&](int number) {
    if (which(kind_of(number))) {
      ::sigaction(number, &before_[static_cast<std::size_t>(number)], nullptr);
    }
  });
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
  restore([](Kind) { return true; });
  ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

bool window_changed() { return window.exchange(false); }

}  // namespace unidle::observe
