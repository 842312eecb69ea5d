#include "unidle/logs/detail/failure_forms.h"

#include <charconv>
#include <csignal>

#include "unidle/base/characters.h"

namespace unidle::logs::detail {

namespace {

using enum Speaker;
constexpr auto kAfter = Blame::kLauncher;
constexpr auto kHost = Lack::kHostMemory;
constexpr auto kShared = Lack::kSharedMemory;
constexpr auto kNo = Lack::kNone;
constexpr auto kMine = Blame::kOwn;

// From the sources of these programs and from public reports of their users.
constexpr std::array kForms = {
    // Slurm: slurmstepd, srun
    Form{"slurmstepd*: error: *xceeded * memory limit at some point*", kScheduler, kHost, kMine, 0, true},
    Form{"slurmstepd*: error: *xceeded *memory limit*", kScheduler, kHost, kMine, SIGKILL},
    Form{"slurmstepd*: error: Detected %c oom?kill event*", kScheduler, kHost, kMine, SIGKILL},
    Form{"srun: error: *: task*: Out Of Memory*", kScheduler, kHost, kMine, SIGKILL},
    Form{"srun: error: *: task %r: Killed*", kLauncher, kNo, kMine, SIGKILL},
    Form{"srun: error: *: task*: Killed*", kLauncher, kNo, kMine, SIGKILL},
    Form{"srun: error: *: task %r: Segmentation fault*", kLauncher, kNo, kMine, SIGSEGV},
    Form{"srun: error: *: task*: Segmentation fault*", kLauncher, kNo, kMine, SIGSEGV},
    Form{"srun: error: *: task*: Bus error*", kLauncher, kShared, kMine, SIGBUS},
    Form{"srun: error: *: task*: Aborted*", kLauncher, kNo, kAfter, SIGABRT},
    Form{"srun: error: *: task %r: Exited with exit code %x", kLauncher, kNo, kAfter},
    Form{"*xited with exit code %x", kLauncher, kNo, kAfter},
    Form{"srun: error: Unable to allocate resources: *", kScheduler},
    Form{"srun: error: Unable to create step for job %n: *", kScheduler},
    // Slurm's seff, which many clusters print after a job's output
    Form{"*State: OUT_OF_MEMORY (exit code*", kScheduler, kHost, kMine, SIGKILL},
    Form{"*State: FAILED (exit code %x)", kLauncher, kNo, kAfter},
    // PBS, LSF
    Form{"=>> PBS: job killed: *mem*exceeded limit*", kScheduler, kHost, kMine, SIGKILL},
    Form{"TERM_MEMLIMIT: job killed*", kScheduler, kHost, kMine, SIGKILL},
    Form{"Exited with exit code %x.", kLauncher, kNo, kAfter},
    Form{"Exited by signal %s.", kLauncher, kNo, kMine},
    // Kubernetes
    Form{"*Reason: OOMKilled*", kScheduler, kHost, kMine, SIGKILL},
    Form{"*reason: OOMKilled*", kScheduler, kHost, kMine, SIGKILL},
    Form{"*\"reason\": \"OOMKilled\"*", kScheduler, kHost, kMine, SIGKILL},
    Form{"*\"reason\":\"OOMKilled\"*", kScheduler, kHost, kMine, SIGKILL},
    Form{"*\"OOMKilled\": true*", kScheduler, kHost, kMine, SIGKILL},
    Form{"*(OOMKilled)*", kScheduler, kHost, kMine, SIGKILL},
    Form{"* %n/%n OOMKilled *", kScheduler, kHost, kMine, SIGKILL},
    Form{"OOMKilled", kScheduler, kHost, kMine, SIGKILL},
    Form{"command terminated with exit code %x", kLauncher, kNo, kAfter},
    Form{"Exit Code: %x", kLauncher, kNo, kAfter},
    // The kernel, systemd
    Form{"Out of memory: Kill*process %n*", kKernel, kHost, kMine, SIGKILL},
    Form{"Memory cgroup out of memory: Kill*process %n*", kKernel, kHost, kMine, SIGKILL},
    Form{"Killed process %n *total-vm:*", kKernel, kHost, kMine, SIGKILL},
    Form{"oom-kill:constraint=*", kKernel, kHost, kMine, SIGKILL},
    Form{"*invoked oom-killer: *", kKernel, kHost, kMine, SIGKILL},
    Form{"*Killed /* due to memory*", kKernel, kHost, kMine, SIGKILL},
    Form{"*: segfault at * ip * sp * error *", kKernel, kNo, kMine, SIGSEGV},
    // Shells
    Form{"Killed", kShell, kNo, kMine, SIGKILL},
    Form{"Killed: 9", kShell, kNo, kMine, SIGKILL},
    Form{"*line %n: %n Killed *", kShell, kNo, kMine, SIGKILL},
    Form{"%n killed *", kShell, kNo, kMine, SIGKILL},
    Form{"+ Killed *", kShell, kNo, kMine, SIGKILL},
    Form{"zsh: killed *", kShell, kNo, kMine, SIGKILL},
    Form{"fish: *terminated by signal SIGKILL*", kShell, kNo, kMine, SIGKILL},
    Form{"Segmentation fault", kShell, kNo, kMine, SIGSEGV},
    Form{"Segmentation fault*(core dumped)", kShell, kNo, kMine, SIGSEGV},
    Form{"Segmentation fault: 11", kShell, kNo, kMine, SIGSEGV},
    Form{"*line %n: %n Segmentation fault *", kShell, kNo, kMine, SIGSEGV},
    Form{"zsh: segmentation fault *", kShell, kNo, kMine, SIGSEGV},
    Form{"Bus error", kShell, kShared, kMine, SIGBUS},
    Form{"Bus error*(core dumped)", kShell, kShared, kMine, SIGBUS},
    Form{"*line %n: %n Bus error *", kShell, kShared, kMine, SIGBUS},
    Form{"zsh: bus error *", kShell, kShared, kMine, SIGBUS},
    Form{"Illegal instruction", kShell, kNo, kMine, SIGILL},
    Form{"Illegal instruction*(core dumped)", kShell, kNo, kMine, SIGILL},
    Form{"*line %n: %n Illegal instruction *", kShell, kNo, kMine, SIGILL},
    Form{"Floating point exception", kShell, kNo, kMine, SIGFPE},
    Form{"Floating point exception*(core dumped)", kShell, kNo, kMine, SIGFPE},
    Form{"*line %n: %n Floating point exception *", kShell, kNo, kMine, SIGFPE},
    Form{"Aborted", kShell, kNo, kAfter, SIGABRT},
    Form{"Aborted*(core dumped)", kShell, kNo, kAfter, SIGABRT},
    Form{"*line %n: %n Aborted *", kShell, kNo, kAfter, SIGABRT},
    Form{"zsh: abort *", kShell, kNo, kAfter, SIGABRT},
    Form{"Command terminated by signal %s", kShell, kNo, kMine},
    Form{"*python*: can't open file *", kShell},
    Form{"*python*: command not found", kShell},
    // Launchers
    Form{"*failed (exitcode: %x) local_rank: %n (pid: %n) of binary*", kLauncher, kNo, kAfter},
    Form{"Process %r exit with status code %x.", kLauncher, kNo, kAfter},
    Form{"Exit code: %x", kLauncher, kNo, kAfter},
    Form{"exit code: %x", kLauncher, kNo, kAfter},
    Form{"*Ended (code %x) at *", kLauncher, kNo, kAfter},  // Kaldi, ESPnet
    Form{"Exit status: %x", kLauncher, kNo, kAfter},
    Form{"exit_code=%x", kLauncher, kNo, kAfter},
    Form{"EXIT_CODE=%x", kLauncher, kNo, kAfter},
    Form{"exit=%x", kLauncher, kNo, kAfter},  // "[FAIL] exit=1"
    Form{"exit %x", kLauncher, kNo, kAfter},
    Form{"exit %x (*)", kLauncher, kNo, kAfter},
    Form{"*ailed with exit code %x", kLauncher, kNo, kAfter},
    Form{"*finished with exit code %x*", kLauncher, kNo, kAfter},
    Form{"*exited with code %x", kLauncher, kNo, kAfter},
    Form{"Command exited with non-zero status %x", kLauncher, kNo, kAfter},
    Form{"make*: *** [*] Error %x", kLauncher, kNo, kAfter},
    Form{"make*: *** [*] Killed", kShell, kNo, kMine, SIGKILL},
    Form{"*exits with return code = %x", kLauncher, kNo, kAfter},
    Form{"*noticed that process rank %r with PID %n on node * exited on signal %s *", kLauncher},
    Form{"*YOUR APPLICATION TERMINATED WITH THE EXIT STRING: * (signal %s)*", kLauncher},
    // C and C++
    Form{"terminate called after throwing an instance of 'std::bad_alloc'*", kRuntime, kHost, kMine},
    Form{"what(): std::bad_alloc*", kRuntime, kHost, kMine},
    Form{"terminate called *", kRuntime, kNo, kAfter},
    Form{"malloc(): *", kRuntime, kNo, kMine, SIGABRT},
    Form{"free(): *", kRuntime, kNo, kMine, SIGABRT},
    Form{"munmap_chunk(): *", kRuntime, kNo, kMine, SIGABRT},
    Form{"double free or corruption*", kRuntime, kNo, kMine, SIGABRT},
    Form{"corrupted size vs. prev_size*", kRuntime, kNo, kMine, SIGABRT},
    Form{"Signal: * (%s)", kRuntime},
    Form{"*** SIGSEGV *received by PID*", kRuntime, kNo, kMine, SIGSEGV},
    Form{"*** SIGBUS *received by PID*", kRuntime, kShared, kMine, SIGBUS},
    Form{"*Segfault encountered !*", kRuntime, kNo, kMine, SIGSEGV},
    Form{"*aught signal %s (*", kRuntime},
    Form{"Darknet error location: *", kRuntime},
    Form{"*OOM when allocating tensor with shape*allocator cpu*", kRuntime, kHost, kMine, 0, true},
    Form{"*OOM when allocating tensor with shape*", kRuntime, Lack::kDeviceMemory, kMine, 0, true},
    Form{"*%c Workers (tasks / actors) killed due to memory pressure*", kRuntime, kHost, kMine, 0,
         true},  // Ray retries
    // Python, torch
    Form{"Fatal Python error: Segmentation fault*", kRuntime, kNo, kMine, SIGSEGV},
    Form{"Fatal Python error: Bus error*", kRuntime, kShared, kMine, SIGBUS},
    Form{"Fatal Python error: Aborted*", kRuntime, kNo, kAfter, SIGABRT},
    Form{"Fatal Python error: *", kRuntime},
    Form{"Unexpected bus error encountered in worker*", kRuntime, kShared, kMine, SIGBUS},
    Form{"Unexpected segmentation fault encountered in worker*", kRuntime, kNo, kMine, SIGSEGV},
    Form{"Unexpected floating-point exception encountered in worker*", kRuntime, kNo, kMine, SIGFPE},
    Form{"*DataLoader worker (pid* is killed by signal: Bus error*", kPython, kShared, kMine, SIGBUS},
    Form{"*DataLoader worker (pid* is killed by signal: Killed*", kPython, kNo, kMine, SIGKILL},
    Form{"*DataLoader worker (pid* is killed by signal: Segmentation fault*", kPython, kNo, kMine, SIGSEGV},
    Form{"*ProcessExitedException: process %r terminated with signal SIGKILL*", kLauncher, kNo, kMine, SIGKILL},
    Form{"*ProcessExitedException: process %r terminated with signal SIGSEGV*", kLauncher, kNo, kMine, SIGSEGV},
    Form{"*CalledProcessError: Command * died with <Signals.SIG*: %s>*", kLauncher},
    Form{"THCudaCheck FAIL *: out of memory", kRuntime, Lack::kDeviceMemory, kMine, 0, true},
    Form{"*NCCL WARN Cuda failure *out of memory*", kRuntime, Lack::kDeviceMemory},
    Form{"Cuda failure *'out of memory'", kRuntime, Lack::kDeviceMemory},
    Form{"*Watchdog caught collective operation timeout: *Timeout(ms)=%t)*", kRuntime, kNo, Blame::kPeer},
    Form{"*Watchdog caught collective operation timeout*", kRuntime, kNo, Blame::kPeer},
    Form{"*watchdog thread terminated with exception: *timeout*", kRuntime, kNo, Blame::kPeer},
    Form{"*watchdog thread terminated with exception: *", kRuntime, kNo, kAfter},
    Form{"Some NCCL operations have failed or timed out*", kRuntime, kNo, Blame::kPeer},
};

/// Consumes and returns the number at the front of `text`.
std::optional<double> take_signed(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{}) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return static_cast<double>(value);
}

void keep(char what, double value, FormNumbers& numbers) {
  const int whole = value > -1e6 && value < 1e6 ? static_cast<int>(value) : 0;
  switch (what) {
    case 'r': numbers.rank = whole; break;
    case 'x': numbers.exit = whole; break;
    case 's': numbers.signal = whole; break;
    case 'c': numbers.count = whole; break;
    case 't': numbers.time_ms = value; break;
    default: break;
  }
}

/// Consumes the first sign of `shape` and its match in `text`; false if they do not match.
bool take_sign(std::string_view& shape, std::string_view& text, FormNumbers& numbers) {
  if (shape.front() == '%') {
    const auto number = take_signed(text);
    if (number) {
      keep(shape[1], *number, numbers);
      shape.remove_prefix(2);
    }
    return number.has_value();
  }
  if (text.empty()) {
    return false;
  }
  if (shape.front() == ' ') {
    const bool blank = is_blank(text.front());
    while (!text.empty() && is_blank(text.front())) {
      text.remove_prefix(1);
    }
    shape.remove_prefix(1);
    return blank;
  }
  const bool same = shape.front() == '?' || shape.front() == text.front();
  shape.remove_prefix(1);
  text.remove_prefix(1);
  return same;
}

}  // namespace

bool has_shape(std::string_view text, std::string_view shape, FormNumbers& numbers) {
  // Only the last "*" ever has to match more: what precedes it was found at its first place.
  std::string_view behind_star;
  std::string_view from;
  bool star = false;
  while (!shape.empty() || !text.empty()) {
    if (!shape.empty() && shape.front() == '*') {
      shape.remove_prefix(1);
      star = true;
      behind_star = shape;
      from = text;
      if (shape.empty()) {
        return true;
      }
    } else if (shape.empty() || !take_sign(shape, text, numbers)) {
      if (!star || from.empty()) {
        return false;
      }
      from.remove_prefix(1);
      text = from;
      shape = behind_star;
    }
  }
  return true;
}

const Form* form_of(std::string_view text, FormNumbers& numbers) {
  for (const Form& form : kForms) {
    numbers = {};
    if (has_shape(text, form.shape, numbers)) {
      return &form;
    }
  }
  return nullptr;
}

}  // namespace unidle::logs::detail
