#include "unidle/observe/output.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>

#include <algorithm>
#include <cerrno>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/standard_streams.h"

namespace unidle::observe {

namespace {

/// How long to wait for more output after the command's end when another process still holds the stream open.
constexpr std::int64_t kGrace_ns = 300 * kNsPerMs;

std::pair<UniqueFd, UniqueFd> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw system_error(ErrorCode::kIo, "pipe", "cannot be created", errno);
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Raw, so that bytes pass unchanged: the real terminal processes them.
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

bool is_null_device(const struct stat& status) {
  constexpr unsigned kMemoryDevices = 1;
  constexpr unsigned kNull = 3;
  return S_ISCHR(status.st_mode) && major(status.st_rdev) == kMemoryDevices && minor(status.st_rdev) == kNull;
}

/// Whether both descriptors refer to the same file, opened once or twice.
bool same_file(int a, int b) {
  struct stat x {};
  struct stat y {};
  return ::fstat(a, &x) == 0 && ::fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

}  // namespace

bool same_open_file(int a, int b) {
  struct stat x {};
  if (!same_file(a, b) || ::fstat(a, &x) != 0) {
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

OutputStreams::OutputStreams(Mode mode, std::size_t tail_bytes) : tail_bytes_(tail_bytes) {
  if (mode == Mode::kPassOn) {
    struct stat status {};
    const bool regular = ::fstat(1, &status) == 0 && S_ISREG(status.st_mode);
    shared_ = is_given_stream(1) && is_given_stream(2) && (regular ? same_file(1, 2) : same_open_file(1, 2));
  }
  for (const int stream : {1, 2}) {
    if (mode == Mode::kKeepOnly) {
      pass_on(stream, -1, false);
    } else if (mode == Mode::kPassOn && is_given_stream(stream) && !(stream == 2 && shared_)) {
      set_up(stream);
    }
  }
}

void OutputStreams::set_up(int stream) {
  struct stat status {};
  if (::fstat(stream, &status) != 0) {
    return;
  }
  const bool terminal = ::isatty(stream) == 1;
  if (S_ISREG(status.st_mode)) {
    tails_[static_cast<std::size_t>(stream - 1)] = FileTail::open(stream, tail_bytes_);
  } else if (terminal || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || is_null_device(status)) {
    pass_on(stream, stream, terminal);
  }
}

void OutputStreams::pass_on(int stream, int to, bool terminal) {
  const auto at = static_cast<std::size_t>(stream - 1);
  auto [ours, childs] = terminal ? make_terminal(stream) : make_pipe();
  auto tail = std::make_unique<SharedTail>(tail_bytes_);
  keepers_[at] = std::make_unique<Keeper>(Keeper::Wiring{ours.get(), to, terminal}, *tail);
  childs_[at] = std::move(childs);
  tails_[at] = std::move(tail);
}

int OutputStreams::child_end(int stream) const {
  const bool passed_on_together = shared_ && stream == 2;
  return childs_[passed_on_together ? 0 : static_cast<std::size_t>(stream - 1)].get();
}

void OutputStreams::start() {
  for (UniqueFd& end : childs_) {
    end.reset();
  }
}

void OutputStreams::finish() {
  for (const auto& keeper : keepers_) {
    if (keeper) {
      keeper->drain();
    }
  }
  const std::int64_t deadline = system_clock().now_ns() + kGrace_ns;
  for (;;) {
    std::array<pollfd, 2> news = {pollfd{-1, POLLIN, 0}, pollfd{-1, POLLIN, 0}};
    bool all_ended = true;
    bool all_drained = true;
    for (std::size_t at = 0; at < keepers_.size(); ++at) {
      if (keepers_[at]) {
        keepers_[at]->listen();
        all_ended = all_ended && keepers_[at]->ended();
        all_drained = all_drained && keepers_[at]->drained();
        news[at].fd = keepers_[at]->news();
      }
    }
    const std::int64_t left_ns = deadline - system_clock().now_ns();
    if (all_ended || (all_drained && left_ns <= 0)) {
      return;
    }
    ::poll(news.data(), news.size(), all_drained ? static_cast<int>(left_ns / kNsPerMs) + 1 : -1);
  }
}

void OutputStreams::resize() {
  for (const auto& keeper : keepers_) {
    if (keeper) {
      keeper->resize();
    }
  }
}

bool OutputStreams::resized() {
  bool any = false;
  for (const auto& keeper : keepers_) {
    any = (keeper && keeper->resized()) || any;
  }
  return any;
}

std::string OutputStreams::tail(int stream) const {
  const auto& tail = tails_[static_cast<std::size_t>(stream - 1)];
  return tail ? tail->text() : "";
}

std::uint64_t OutputStreams::total() const {
  return (tails_[0] ? tails_[0]->total() : 0) + (tails_[1] ? tails_[1]->total() : 0);
}

}  // namespace unidle::observe
