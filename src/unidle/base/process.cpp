#include "unidle/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/environment.h"
#include "unidle/base/error.h"

namespace unidle {

namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw system_error(ErrorCode::kChild, "pipe", "cannot be created", errno);
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Runs between fork and exec; async-signal-safe.
void redirect(Command::Stream stream, int target, int pipe_end) {
  if (stream == Command::Stream::kPipe) {
    ::dup2(pipe_end, target);
  } else if (stream == Command::Stream::kNull) {
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, target);
    ::close(null);
  }
}

void reset_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGCHLD}) {
    ::signal(number, SIG_DFL);
  }
}

ExitStatus decode(int status) {
  if (WIFSIGNALED(status)) {
    return {0, WTERMSIG(status)};
  }
  return {WEXITSTATUS(status), 0};
}

}  // namespace

ChildProcess::ChildProcess(const Command& command) : own_group_(command.own_group) {
  if (command.argv.empty()) {
    throw Error(ErrorCode::kUsage, "command", "is empty");
  }
  std::vector<std::string> arguments = command.argv;
  std::vector<std::string> environment = merged_environment(command.environment);
  const std::vector<char*> argv = c_strings(arguments);
  const std::vector<char*> envp = c_strings(environment);
  Pipe in = command.in == Command::Stream::kPipe ? make_pipe() : Pipe{};
  Pipe out = command.out == Command::Stream::kPipe ? make_pipe() : Pipe{};
  Pipe err = command.err == Command::Stream::kPipe ? make_pipe() : Pipe{};
  Pipe failure = make_pipe();  // closed by a successful exec, otherwise carries errno
  ::signal(SIGCHLD, SIG_DFL);  // if inherited as ignored, no child could be waited for
  const pid_t parent = ::getpid();

  pid_ = ::fork();
  if (pid_ < 0) {
    throw system_error(ErrorCode::kChild, command.argv[0], "cannot fork", errno);
  }
  if (pid_ == 0) {
    if (command.own_group) {
      ::setpgid(0, 0);
    }
    if (command.die_with_parent) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) {
        ::_exit(127);
      }
    }
    reset_signals();
    redirect(command.in, 0, in.read.get());
    redirect(command.out, 1, out.write.get());
    redirect(command.err, 2, err.write.get());
    if (!command.folder || ::chdir(command.folder->c_str()) == 0) {
      ::execvpe(argv[0], argv.data(), envp.data());
    }
    const int number = errno;
    [[maybe_unused]] const ssize_t put = ::write(failure.write.get(), &number, sizeof number);
    ::_exit(127);
  }
  if (command.own_group) {
    ::setpgid(pid_, pid_);  // set on both sides, so that no kill() comes too early
  }
  failure.write.reset();
  int number = 0;
  if (::read(failure.read.get(), &number, sizeof number) == sizeof number) {
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    throw system_error(ErrorCode::kInput, command.argv[0], "cannot be started", number);
  }
  in_ = std::move(in.write);
  out_ = std::move(out.read);
  err_ = std::move(err.read);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !poll()) {
    kill(SIGKILL);
    wait();
  }
}

std::optional<ExitStatus> ChildProcess::poll() {
  if (!status_) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = decode(status);
    }
  }
  return status_;
}

ExitStatus ChildProcess::wait() {
  while (!status_) {
    int status = 0;
    if (::waitpid(pid_, &status, 0) == pid_) {
      status_ = decode(status);
    } else if (errno != EINTR) {
      throw system_error(ErrorCode::kChild, "child", "cannot be waited for", errno);
    }
  }
  return *status_;
}

void ChildProcess::kill(int signal) {
  if (pid_ > 0 && !status_) {
    ::kill(own_group_ ? -pid_ : pid_, signal);
  }
}

namespace {

/// Reads the available bytes; false once the other end is closed.
bool drain(int fd, std::string& into) {
  std::array<char, 16 * 1024> buffer;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got > 0) {
    into.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return got > 0 || (got < 0 && errno == EINTR);
}

/// Sends TERM once and KILL five seconds later.
class Terminator {
 public:
  void end(ChildProcess& child) {
    const std::int64_t now = system_clock().now_ns();
    if (term_ns_ == 0) {
      child.kill(SIGTERM);
      term_ns_ = now;
    } else if (now - term_ns_ > 5 * kNsPerSecond) {
      child.kill(SIGKILL);
    }
  }

 private:
  std::int64_t term_ns_ = 0;
};

}  // namespace

Finished run_to_end(Command command, std::optional<std::chrono::milliseconds> limit, std::stop_token stop) {
  command.out = Command::Stream::kPipe;
  command.err = Command::Stream::kPipe;
  command.own_group = true;
  command.die_with_parent = true;
  ChildProcess child(command);
  const std::int64_t deadline = limit ? system_clock().now_ns() + std::chrono::nanoseconds(*limit).count() : INT64_MAX;

  Finished result;
  Terminator terminator;
  std::array<pollfd, 2> streams = {pollfd{child.out(), POLLIN, 0}, pollfd{child.err(), POLLIN, 0}};
  const std::array<std::string*, 2> sinks = {&result.out, &result.err};
  const auto any_open = [&] { return std::any_of(streams.begin(), streams.end(), [](auto& s) { return s.fd >= 0; }); };
  // A grandchild may keep the pipes open after the child has ended: do not wait for its output.
  while (any_open() && !child.poll()) {
    ::poll(streams.data(), streams.size(), 50);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if ((streams[i].revents & (POLLIN | POLLHUP)) != 0 && !drain(streams[i].fd, *sinks[i])) {
        streams[i].fd = -1;
      }
    }
    if (system_clock().now_ns() > deadline || stop.stop_requested()) {
      result.timed_out = result.timed_out || !stop.stop_requested();
      terminator.end(child);
    }
  }
  result.status = child.wait();
  for (std::size_t i = 0; i < streams.size(); ++i) {
    while (streams[i].fd >= 0 && ::poll(&streams[i], 1, 0) > 0 && drain(streams[i].fd, *sinks[i])) {
    }
  }
  return result;
}

}  // namespace unidle
