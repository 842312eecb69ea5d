#include "unidle/observe/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "unidle/base/error.h"

extern char** environ;

namespace unidle::observe {

namespace {

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) {
      merged.push_back(text);
    }
  }
  for (const auto& [name, value] : added) {
    merged.push_back(name + "=" + value);
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

/// Async-signal-safe: runs between fork and exec.
void prepare_child(const SpawnOptions& options, const OutputStreams& streams, const SignalForwarder& signals) {
  if (options.own_group) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, 0);
    ::close(null);
  }
  for (const int stream : {1, 2}) {
    if (const int end = streams.child_end(stream); end >= 0) {
      ::dup2(end, stream);
    }
  }
  signals.restore_in_child();
}

}  // namespace

pid_t spawn(const SpawnOptions& options, const OutputStreams& streams, const SignalForwarder& signals) {
  std::vector<std::string> arguments = options.argv;
  std::vector<std::string> environment = merged_environment(options.environment);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw system_error(ErrorCode::kChild, "pipe", "cannot be created", errno);
  }
  const UniqueFd failed(ends[0]);
  UniqueFd fail(ends[1]);  // closed by a successful exec, otherwise carries errno

  const pid_t pid = ::fork();
  if (pid < 0) {
    throw system_error(ErrorCode::kChild, options.argv[0], "cannot fork", errno);
  }
  if (pid == 0) {
    prepare_child(options, streams, signals);
    ::execvpe(argv[0], argv.data(), envp.data());
    const int number = errno;
    [[maybe_unused]] const ssize_t put = ::write(fail.get(), &number, sizeof number);
    ::_exit(127);
  }
  if (options.own_group) {
    ::setpgid(pid, pid);  // both sides set it, so that no signal can come too early
  }
  fail.reset();
  int number = 0;
  ssize_t got = 0;
  do {
    got = ::read(failed.get(), &number, sizeof number);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof number) {
    ::waitpid(pid, nullptr, 0);
    throw system_error(ErrorCode::kInput, options.argv[0], "cannot be started", number);
  }
  return pid;
}

}  // namespace unidle::observe
