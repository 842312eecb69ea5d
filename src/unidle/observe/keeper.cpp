#include "unidle/observe/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "unidle/base/error.h"

namespace unidle::observe {

namespace {

constexpr char kResize = 'r';
constexpr char kDrain = 'd';
constexpr std::size_t kBufferBytes = 64 * 1024;
/// More than a pseudo-terminal buffers; for a pipe the kernel reports the number of bytes.
constexpr std::size_t kMostPending_bytes = 256 * 1024;

// Everything down to the class runs in the forked process of a program that may have threads: it must not allocate or
// lock.

void close_range_of(unsigned first, unsigned last) {
  if (first > last || ::close_range(first, last, 0) == 0) {
    return;
  }
  rlimit limit{};  // an older kernel without close_range
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto end = static_cast<unsigned>(std::min<rlim_t>(limit.rlim_cur, 65'536));
  for (unsigned fd = first; fd < std::min(last, end); ++fd) {
    ::close(static_cast<int>(fd));
  }
}

/// Holds nothing else open: neither an input that somebody writes to, nor a lock, nor the other stream.
void close_all_but(std::array<int, 3> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = 0;
  for (const int fd : kept) {
    if (fd >= 0) {
      if (fd > 0) {
        close_range_of(first, static_cast<unsigned>(fd) - 1);
      }
      first = static_cast<unsigned>(fd) + 1;
    }
  }
  close_range_of(first, ~0U);
}

/// Process lists show it under its own name rather than as a second command.
void take_name() {
  constexpr std::string_view kName = "output-keeper (unidle)";
  ::prctl(PR_SET_NAME, "output-keeper");
  std::array<char, 2048> stat;
  const int fd = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd >= 0 ? ::read(fd, stat.data(), stat.size() - 1) : -1;
  ::close(fd);
  if (got <= 0) {
    return;
  }
  stat[static_cast<std::size_t>(got)] = '\0';
  // Fields 48 and 49 are the addresses of the arguments; field 3 follows the name in brackets.
  const char* at = std::strrchr(stat.data(), ')');
  for (int field = 3; at != nullptr && field <= 48; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  if (at == nullptr) {
    return;
  }
  char* end = nullptr;
  const std::uintptr_t first = std::strtoul(at, &end, 10);
  const std::uintptr_t last = std::strtoul(end, nullptr, 10);
  if (first != 0 && last > first) {
    auto* arguments = reinterpret_cast<char*>(first);  // NOLINT(performance-no-int-to-ptr): the kernel's own figure
    std::memset(arguments, 0, last - first);
    std::memcpy(arguments, kName.data(), std::min<std::size_t>(kName.size(), last - first - 1));
  }
}

class Copier {
 public:
  Copier(const Keeper::Wiring& wiring, int control, SharedTail& tail)
      : from_(wiring.from), to_(wiring.to), terminal_(wiring.terminal), control_(control), tail_(tail) {}

  void run() {
    for (;;) {
      std::array<pollfd, 3> fds = {pollfd{from_, POLLIN, 0}, pollfd{control_, POLLIN, 0}, pollfd{to_, 0, 0}};
      if (::poll(fds.data(), fds.size(), -1) < 0) {
        if (errno == EINTR) {
          continue;
        }
        return;
      }
      if ((fds[2].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
        return;  // nobody reads it any more
      }
      if (fds[1].revents != 0) {
        answer();
      } else if (fds[0].revents != 0 && copy(kBufferBytes) == 0) {
        return;
      }
    }
  }

 private:
  /// Number of bytes copied; 0 at the end of the stream, or if the target cannot be written.
  std::size_t copy(std::size_t most) {
    ssize_t got = 0;
    do {
      got = ::read(from_, buffer_.data(), std::min(most, buffer_.size()));
    } while (got < 0 && (errno == EINTR || errno == EAGAIN));
    if (got <= 0) {
      return 0;  // EIO: the last holder of a pseudo-terminal has closed it
    }
    const auto count = static_cast<std::size_t>(got);
    tail_.append(buffer_.data(), count);
    return to_ < 0 || write_all(count) ? count : 0;
  }

  bool write_all(std::size_t count) {
    for (std::size_t done = 0; done < count;) {
      const ssize_t put = ::write(to_, buffer_.data() + done, count - done);
      if (put >= 0) {
        done += static_cast<std::size_t>(put);
      } else if (errno == EAGAIN) {
        pollfd wait{to_, POLLOUT, 0};
        ::poll(&wait, 1, -1);
      } else if (errno != EINTR) {
        return false;
      }
    }
    return true;
  }

  void answer() {
    char what = 0;
    const ssize_t got = ::recv(control_, &what, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      return;
    }
    if (got <= 0) {  // the parent is gone; the stream is still open
      ::close(control_);
      control_ = -1;
      return;
    }
    winsize size{};
    if (what == kResize && terminal_ && ::ioctl(to_, TIOCGWINSZ, &size) == 0) {
      ::ioctl(from_, TIOCSWINSZ, &size);
    } else if (what == kDrain) {
      pass_on_what_is_there();
    }
    ::send(control_, &what, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  /// Bounded: another process may write for ever.
  void pass_on_what_is_there() {
    int waiting = 0;
    ::ioctl(from_, FIONREAD, &waiting);
    std::size_t left = std::max(static_cast<std::size_t>(std::max(waiting, 0)), kMostPending_bytes);
    pollfd ready{from_, POLLIN, 0};
    while (left > 0 && ::poll(&ready, 1, 0) > 0) {
      const std::size_t copied = copy(left);
      if (copied == 0) {
        ::_exit(0);
      }
      left -= copied;
    }
  }

  int from_;
  int to_;
  bool terminal_;
  int control_;
  SharedTail& tail_;
  std::array<char, kBufferBytes> buffer_;
};

[[noreturn]] void keep(const Keeper::Wiring& wiring, int control, SharedTail& tail) {
  ::setsid();
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  take_name();
  close_all_but({wiring.from, wiring.to, control});
  [[maybe_unused]] const int moved = ::chdir("/");
  Copier(wiring, control, tail).run();
  ::_exit(0);
}

}  // namespace

Keeper::Keeper(const Wiring& wiring, SharedTail& tail) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw system_error(ErrorCode::kIo, "socket pair", "cannot be created", errno);
  }
  control_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) {
    throw system_error(ErrorCode::kIo, "keeper of the output", "cannot be started", errno);
  }
  if (pid_ == 0) {
    keep(wiring, theirs.get(), tail);
  }
}

Keeper::~Keeper() {
  const bool over = ended();
  control_.reset();
  if (pid_ > 0) {
    ::waitpid(pid_, nullptr, over ? 0 : WNOHANG);
  }
}

void Keeper::ask(char what) {
  if (control_ && ::send(control_.get(), &what, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) {
    control_.reset();
  }
}

void Keeper::resize() { ask(kResize); }

bool Keeper::resized() {
  listen();
  return std::exchange(resized_, false);
}

void Keeper::drain() { ask(kDrain); }

void Keeper::listen() {
  char what = 0;
  while (control_) {
    const ssize_t got = ::recv(control_.get(), &what, 1, MSG_DONTWAIT);
    if (got == 1) {
      resized_ = resized_ || what == kResize;
      drained_ = drained_ || what == kDrain;
    } else if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      return;
    } else {
      control_.reset();
    }
  }
}

}  // namespace unidle::observe
