#include "unidle/cli/signal_stop.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "unidle/base/error.h"

namespace unidle::cli {

namespace {

/// The write end of the pipe below; global because a signal handler cannot reach anything else.
std::atomic<int> g_signal_pipe{-1};

void on_signal(int number) {
  const auto byte = static_cast<char>(number);
  [[maybe_unused]] const ssize_t put = ::write(g_signal_pipe.load(), &byte, 1);
}

}  // namespace

SignalStop::SignalStop() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw system_error(ErrorCode::kIo, "pipe", "cannot be created", errno);
  }
  read_ = UniqueFd(ends[0]);
  write_ = UniqueFd(ends[1]);
  g_signal_pipe = write_.get();
  waiter_ = std::thread([this] { wait(); });
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &before_int_);
  ::sigaction(SIGTERM, &action, &before_term_);
}

SignalStop::~SignalStop() {
  ::sigaction(SIGINT, &before_int_, nullptr);
  ::sigaction(SIGTERM, &before_term_, nullptr);
  g_signal_pipe = -1;
  write_.reset();  // ends the waiting thread
  waiter_.join();
}

void SignalStop::wait() {
  char number = 0;
  for (;;) {
    const ssize_t got = ::read(read_.get(), &number, 1);
    if (got == 1) {
      signal_ = number;
      source_.request_stop();
    } else if (got == 0 || errno != EINTR) {
      return;
    }
  }
}

}  // namespace unidle::cli
