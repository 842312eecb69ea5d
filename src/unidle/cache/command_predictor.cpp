#include "unidle/cache/command_predictor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/printable.h"

namespace unidle::cache {

namespace {

constexpr std::size_t kLastWords = 4096;
constexpr int kPoll_ms = 50;  // how soon a stop is noticed

Command as_command(const CommandOptions& options) {
  Command command;
  command.argv = options.command;
  command.in = Command::Stream::kPipe;
  command.out = Command::Stream::kPipe;
  command.err = Command::Stream::kPipe;
  command.own_group = true;
  command.die_with_parent = true;
  return command;
}

void make_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// Writing to a program that has ended must not kill us: blocks SIGPIPE for this thread and discards a pending one.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeBlocked() {
    if (sigismember(&before_, SIGPIPE) == 0) {
      const timespec none{};
      while (::sigtimedwait(&pipe_, nullptr, &none) > 0) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  const std::size_t begin = text.rfind('\n');
  return printable_line(begin == std::string_view::npos ? text : text.substr(begin + 1));
}

}  // namespace

CommandPredictor::CommandPredictor(CommandOptions options, std::stop_token stop)
    : options_(std::move(options)), child_(as_command(options_)), reader_(options_.limits) {
  for (const int fd : {child_.in(), child_.out(), child_.err()}) {
    make_nonblocking(fd);
  }
  const protocol::Frame frame = exchange(protocol::hello(options_.parameters), options_.start_limit_ns, stop);
  try {
    facts_ = protocol::read_ready(frame);
  } catch (const Error& error) {
    fail(error.message());
  }
}

CommandPredictor::~CommandPredictor() {
  const SigpipeBlocked quiet;
  const std::string last = protocol::bye();
  [[maybe_unused]] const ssize_t put = ::write(child_.in(), last.data(), last.size());
  child_.close_in();
  // Gives it a moment to end; then the child's destructor ends the whole group.
  const std::int64_t deadline = system_clock().now_ns() + kNsPerSecond / 2;
  while (!failed_ && !child_.poll() && system_clock().now_ns() < deadline) {
    ::poll(nullptr, 0, 2);
  }
}

void CommandPredictor::fail(const std::string& why, ErrorCode code) {
  failed_ = true;
  read_errors();
  const std::string words = last_line(last_words_);
  throw Error(code, options_.command.front(), words.empty() ? why : fmt::format("{}: {}", why, words));
}

void CommandPredictor::read_errors() {
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while (!errors_ended_ && (got = ::read(child_.err(), buffer.data(), buffer.size())) > 0) {
    last_words_.append(buffer.data(), static_cast<std::size_t>(got));
    if (last_words_.size() > 2 * kLastWords) {
      last_words_.erase(0, last_words_.size() - kLastWords);
    }
  }
  errors_ended_ = errors_ended_ || got == 0;
}

void CommandPredictor::read_output() {
  constexpr int kMost = 64;  // bounds the loop when a program never stops writing
  std::array<char, 64 * 1024> buffer;
  for (int i = 0; i < kMost && !output_ended_; ++i) {
    const ssize_t got = ::read(child_.out(), buffer.data(), buffer.size());
    if (got < 0) {
      return;
    }
    reader_.feed({buffer.data(), static_cast<std::size_t>(got)});
    output_ended_ = got == 0;
  }
}

std::optional<ExitStatus> CommandPredictor::end_of_child() {
  const std::int64_t deadline = system_clock().now_ns() + 10 * kNsPerSecond;  // Python takes a while to exit
  while (!child_.poll() && system_clock().now_ns() < deadline) {
    ::poll(nullptr, 0, 2);  // it has closed its output and is about to exit
  }
  return child_.poll();
}

void CommandPredictor::fail_ended() {
  const auto status = end_of_child();
  if (!status) {
    fail("it closed its standard output");
  }
  if (status->signal != 0) {
    fail(fmt::format("it was ended by signal {}", status->signal));
  }
  // Exit code 2 before it was ready means a wrong call or a missing dependency: restarting does not help.
  const bool no_use = status->code == 2 && facts_.identity.empty();
  fail(fmt::format("it ended with exit code {}", status->code), no_use ? ErrorCode::kInput : ErrorCode::kChild);
}

protocol::Frame CommandPredictor::exchange(std::string_view message, std::int64_t limit_ns, std::stop_token stop) {
  const SigpipeBlocked quiet;
  const std::int64_t deadline = system_clock().now_ns() + limit_ns;
  for (;;) {
    try {
      if (auto frame = reader_.next()) {
        if (!message.empty()) {
          fail("it answered before it had been asked");
        }
        return std::move(*frame);
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kChild) {
        throw;
      }
      fail(error.message());
    }
    if (output_ended_) {
      fail_ended();
    }
    if (stop.stop_requested()) {
      failed_ = true;
      throw Error(ErrorCode::kCancelled, options_.command.front(), "was stopped");
    }
    const std::int64_t left_ns = deadline - system_clock().now_ns();
    if (left_ns <= 0) {
      fail(fmt::format("no answer within {:.3g} s", seconds(limit_ns)));
    }
    std::array<pollfd, 3> streams = {pollfd{child_.out(), POLLIN, 0},
                                     pollfd{errors_ended_ ? -1 : child_.err(), POLLIN, 0},
                                     pollfd{message.empty() ? -1 : child_.in(), POLLOUT, 0}};
    ::poll(streams.data(), streams.size(), static_cast<int>(std::min<std::int64_t>(left_ns / kNsPerMs + 1, kPoll_ms)));
    if (streams[2].revents != 0) {
      const ssize_t put = ::write(child_.in(), message.data(), message.size());
      if (put > 0) {
        message.remove_prefix(static_cast<std::size_t>(put));
      } else if (put < 0 && errno == EPIPE) {
        message = {};  // its last output explains more
      }
    }
    read_errors();
    read_output();
  }
}

std::vector<Prediction> CommandPredictor::predict(std::span<const std::string> inputs, std::stop_token stop) {
  const std::uint64_t id = ++batches_;
  const protocol::Frame frame = exchange(protocol::batch(id, inputs), options_.batch_limit_ns, stop);
  try {
    return protocol::read_result(frame, id, inputs.size());
  } catch (const Error& error) {
    fail(error.message());
  }
}

}  // namespace unidle::cache
