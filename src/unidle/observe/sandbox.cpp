#include "unidle/observe/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/handle.h"

namespace unidle::observe {

namespace {

struct Failure {
  int number = 0;
  std::array<char, 96> step{};
};

std::string in_words(const Failure& failure) {
  std::string text = fmt::format("{}: {}", failure.step.data(), std::generic_category().message(failure.number));
  const auto restricted = try_read_file("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
  const bool refused = failure.number == EPERM || failure.number == EACCES;
  if (refused && restricted && restricted->starts_with('1')) {
    text += " (AppArmor: kernel.apparmor_restrict_unprivileged_userns is 1)";
  }
  return text;
}

}  // namespace

std::unique_ptr<const Sandbox> make_sandbox(const SandboxOptions& options) {
  return options.kind == SandboxOptions::Kind::kLayers ? make_layers(options) : make_write_lock(options);
}

std::optional<std::string> why_no_sandbox(const SandboxOptions& options) {
  std::unique_ptr<const Sandbox> sandbox;
  try {
    sandbox = make_sandbox(options);
  } catch (const Error& failure) {
    return failure.message();
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return "no pipe can be made";
  }
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return "no process can be started";
  }
  if (pid == 0) {
    Failure failure;
    const char* step = "";
    failure.number = sandbox->enter(step);
    ::strncpy(failure.step.data(), step, failure.step.size() - 1);
    [[maybe_unused]] const ssize_t put = ::write(write_end.get(), &failure, sizeof failure);
    ::_exit(0);
  }
  write_end.reset();
  Failure failure;
  ssize_t got = 0;
  do {
    got = ::read(read_end.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (got != sizeof failure) {
    return "the process that tried it ended early";
  }
  return failure.number == 0 ? std::nullopt : std::optional(in_words(failure));
}

}  // namespace unidle::observe
