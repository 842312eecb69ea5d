#include "unidle/observe/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "unidle/base/environment.h"
#include "unidle/base/error.h"

namespace unidle::observe {

namespace {

/// Marks all descriptors from `first` on. Async-signal-safe.
void close_on_exec(int first) {
  if (::close_range(static_cast<unsigned>(first), ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
    return;
  }
  rlimit limit{};  // a kernel before 5.11
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 65'536));
  for (int fd = first; fd < end; ++fd) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

/// Runs between fork and exec; async-signal-safe.
void prepare_child(const SpawnOptions& options, pid_t parent, const OutputStreams& streams,
                   const SignalForwarder& signals) {
  if (options.own_group) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(127);  // the parent died before prctl
    }
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, 0);
    ::close(null);
    // Inherited descriptors lead out of a trial's sandbox, to the user's files. They are not closed here, because exec
    // reports its failure through one of them.
    close_on_exec(3);
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
  const std::vector<char*> argv = c_strings(arguments);
  const std::vector<char*> envp = c_strings(environment);
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    ends = {-1, -1};  // the failure of exec then shows as exit code 127, as in a shell
  }
  const UniqueFd failed(ends[0]);
  UniqueFd fail(ends[1]);  // closed by a successful exec, otherwise carries errno

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw system_error(ErrorCode::kChild, options.argv[0], "cannot fork", errno);
  }
  if (pid == 0) {
    const int refused = options.sandbox == nullptr ? 0 : options.sandbox->enter();
    prepare_child(options, parent, streams, signals);
    errno = refused;
    if (refused == 0 && (options.folder.empty() || ::chdir(options.folder.c_str()) == 0)) {
      ::execvpe(argv[0], argv.data(), envp.data());
    }
    const int number = errno;
    [[maybe_unused]] const ssize_t put = ::write(fail.get(), &number, sizeof number);
    ::_exit(127);
  }
  if (options.own_group) {
    ::setpgid(pid, pid);  // set on both sides, so that no signal comes too early
  }
  fail.reset();
  int number = 0;
  ssize_t got = 0;
  do {
    got = ::read(failed.get(), &number, sizeof number);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof number) {
    ::waitpid(pid, nullptr, 0);
    const std::filesystem::path program = options.argv[0];
    std::error_code failure;
    if (program.extension() == ".py" && std::filesystem::exists(options.folder / program, failure)) {
      throw Error(ErrorCode::kInput, program.string(), "is a Python file, not a program",
                  "unidle run -- python " + program.string());
    }
    throw system_error(ErrorCode::kInput, program.string(), "cannot be started", number);
  }
  return pid;
}

}  // namespace unidle::observe
