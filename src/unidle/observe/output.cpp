#include "unidle/observe/output.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>

#include <algorithm>
#include <cerrno>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"

namespace unidle::observe {

namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
/// How long after its end the command's output is waited for, when somebody else still holds the stream open.
constexpr std::int64_t kGrace_ns = 300 * kNsPerMs;

std::pair<UniqueFd, UniqueFd> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw system_error(ErrorCode::kIo, "pipe", "cannot be created", errno);
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Raw, so that bytes pass unchanged: the real terminal does the processing.
std::pair<UniqueFd, UniqueFd> make_terminal(int like) {
  termios settings{};
  winsize size{};
  ::tcgetattr(like, &settings);
  ::ioctl(like, TIOCGWINSZ, &size);
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  int ours = -1;
  int childs = -1;
  if (::openpty(&ours, &childs, nullptr, &settings, &size) != 0) {
    throw system_error(ErrorCode::kIo, "pseudo-terminal", "cannot be created", errno);
  }
  ::fcntl(ours, F_SETFD, FD_CLOEXEC);
  ::fcntl(childs, F_SETFD, FD_CLOEXEC);
  return {UniqueFd(ours), UniqueFd(childs)};
}

}  // namespace

void Tail::append(const char* bytes, std::size_t count) {
  const std::lock_guard lock(mutex_);
  total_ += count;
  bytes_.append(bytes, count);
  if (bytes_.size() > 2 * limit_) {  // now and then, not at every append
    bytes_.erase(0, bytes_.size() - limit_);
  }
}

std::string Tail::text() const {
  const std::lock_guard lock(mutex_);
  return bytes_.size() > limit_ ? bytes_.substr(bytes_.size() - limit_) : bytes_;
}

std::uint64_t Tail::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

Pump::Pump(UniqueFd from, int to, Tail& tail) : from_(std::move(from)), to_(to), tail_(tail) {
  std::tie(wake_read_, wake_write_) = make_pipe();
  thread_ = std::thread([this] { loop(); });
}

Pump::~Pump() { finish(); }

void Pump::finish() {
  if (thread_.joinable()) {
    wake_write_.reset();
    thread_.join();
  }
}

void Pump::loop() {
  // Signals belong to the main thread: here they would only interrupt.
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  while (wait_readable() && copy_once(kBufferBytes)) {
  }
  from_.reset();
}

/// False at the end: the reader of our output is gone, or the command has ended and so has its output.
bool Pump::wait_readable() {
  std::array<pollfd, 3> fds = {pollfd{from_.get(), POLLIN, 0}, pollfd{wake_read_.get(), 0, 0}, pollfd{to_, 0, 0}};
  for (;;) {
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      return false;
    }
    if ((fds[2].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
      return false;
    }
    if (fds[1].revents == 0 && fds[0].revents != 0) {
      return true;
    }
    if (fds[1].revents != 0) {
      break;
    }
  }
  // The command has ended. Whoever still holds the stream gets a moment; what lies in it is always passed on.
  const std::int64_t deadline = system_clock().now_ns() + kGrace_ns;
  for (std::int64_t left = kGrace_ns; left > 0; left = deadline - system_clock().now_ns()) {
    const int ready = ::poll(fds.data(), 1, static_cast<int>(left / kNsPerMs) + 1);
    if (ready > 0 && !copy_once(kBufferBytes)) {
      return false;
    }
  }
  int rest = 0;
  if (::ioctl(from_.get(), FIONREAD, &rest) == 0 && rest > 0) {
    for (auto more = static_cast<std::size_t>(rest); more > 0;) {
      const std::size_t step = std::min(more, kBufferBytes);
      if (!copy_once(step)) {
        break;
      }
      more -= step;
    }
  }
  return false;
}

/// False at the end of the stream, or when it cannot be passed on.
bool Pump::copy_once(std::size_t limit) {
  std::array<char, kBufferBytes> buffer;
  const ssize_t got = ::read(from_.get(), buffer.data(), limit);
  if (got < 0) {
    return errno == EINTR || errno == EAGAIN;  // EIO: the last holder of a pseudo-terminal has closed it
  }
  if (got == 0) {
    return false;
  }
  tail_.append(buffer.data(), static_cast<std::size_t>(got));
  return to_ < 0 || write_all(buffer.data(), static_cast<std::size_t>(got));
}

bool Pump::write_all(const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t put = ::write(to_, bytes, count);
    if (put >= 0) {
      bytes += put;
      count -= static_cast<std::size_t>(put);
    } else if (errno == EAGAIN) {
      pollfd wait{to_, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool same_open_file(int a, int b) {
  struct stat x {};
  struct stat y {};
  if (::fstat(a, &x) != 0 || ::fstat(b, &y) != 0 || x.st_dev != y.st_dev || x.st_ino != y.st_ino) {
    return false;
  }
#ifdef SYS_kcmp
  constexpr int kCompareFiles = 0;  // KCMP_FILE
  const long order = ::syscall(SYS_kcmp, ::getpid(), ::getpid(), kCompareFiles, a, b);
  if (order >= 0 && S_ISREG(x.st_mode)) {
    return order == 0;
  }
#endif
  // A pipe or terminal behaves the same however often it was opened.
  return !S_ISREG(x.st_mode) || ::lseek(a, 0, SEEK_CUR) == ::lseek(b, 0, SEEK_CUR);
}

OutputStreams::OutputStreams(Mode mode, std::size_t tail_bytes) : mode_(mode) {
  for (auto& tail : tails_) {
    tail = std::make_unique<Tail>(tail_bytes);
  }
  if (mode == Mode::kLeaveAlone) {
    return;
  }
  shared_ = mode == Mode::kPassOn && same_open_file(1, 2);
  for (const int stream : {1, 2}) {
    const bool closed = ::fcntl(stream, F_GETFD) < 0;
    if (mode == Mode::kKeepOnly) {
      make_channel(stream, false);
    } else if (!closed && !(stream == 2 && shared_)) {
      make_channel(stream, ::isatty(stream) == 1);
    }
  }
}

void OutputStreams::make_channel(int stream, bool terminal) {
  const auto at = static_cast<std::size_t>(stream - 1);
  std::tie(ours_[at], childs_[at]) = terminal ? make_terminal(stream) : make_pipe();
  terminal_[at] = terminal;
}

int OutputStreams::child_end(int stream) const {
  return childs_[shared_ ? 0 : static_cast<std::size_t>(stream - 1)].get();
}

void OutputStreams::start() {
  for (const int stream : {1, 2}) {
    const auto at = static_cast<std::size_t>(stream - 1);
    if (ours_[at]) {
      pumps_[at] = std::make_unique<Pump>(std::move(ours_[at]), mode_ == Mode::kKeepOnly ? -1 : stream, *tails_[at]);
    }
    childs_[at].reset();
  }
}

void OutputStreams::finish() {
  for (auto& pump : pumps_) {
    if (pump) {
      pump->finish();
    }
  }
}

void OutputStreams::resize() {
  for (const int stream : {1, 2}) {
    const auto at = static_cast<std::size_t>(stream - 1);
    winsize size{};
    if (terminal_[at] && pumps_[at] && ::ioctl(stream, TIOCGWINSZ, &size) == 0) {
      ::ioctl(pumps_[at]->from(), TIOCSWINSZ, &size);
    }
  }
}

}  // namespace unidle::observe
