#include "unidle/observe/observe.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <optional>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/handle.h"
#include "unidle/base/log.h"
#include "unidle/base/units.h"
#include "unidle/observe/orphan_reaper.h"
#include "unidle/observe/output.h"
#include "unidle/observe/python.h"
#include "unidle/observe/recorder.h"
#include "unidle/observe/signals.h"
#include "unidle/observe/spawn.h"
#include "unidle/telemetry/process_tree.h"

namespace unidle::observe {

namespace {

constexpr std::size_t kTailBytes = 64 * 1024;
constexpr std::size_t kQuietTailBytes = 256 * 1024;
constexpr int kWakeup_ms = 50;
constexpr std::int64_t kPatience_ns = 5 * kNsPerSecond;

/// Runs `work`; an error of ours is logged and affects nothing else.
template <typename Work>
void guarded(std::string_view what, Work work) {
  try {
    work();
  } catch (const std::exception& error) {
    spdlog::warn("{}, the command runs on: {}", what, error.what());
  }
}

/// The running command.
class Supervisor {
 public:
  Supervisor(pid_t pid, bool own_group, const Options& options, OutputStreams& streams)
      : pid_(pid),
        own_group_(own_group),
        options_(options),
        streams_(streams),
        deadline_ns_(options.timeout_s ? system_clock().now_ns() + nanoseconds(*options.timeout_s) : INT64_MAX),
        handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

  /// Returns once the command has ended, before it is reaped.
  void wait_for_end() {
    while (!ended()) {
      if (handle_) {
        pollfd wait{handle_.get(), POLLIN, 0};
        ::poll(&wait, 1, kWakeup_ms);
      } else {
        ::usleep(10'000);  // an older kernel without pidfd
      }
      if (window_changed()) {
        streams_.resize();
      }
      if (streams_.resized()) {
        ::kill(pid_, SIGWINCH);  // it may have asked for the size before it was set
      }
      const std::int64_t now = system_clock().now_ns();
      timed_out_ = timed_out_ || now > deadline_ns_;
      stopped_ = stopped_ || options_.stop.stop_requested();
      if (timed_out_ || stopped_) {
        end(now);
      }
    }
    if (term_ns_ != 0 && !own_group_) {
      end_left_behind();
    }
  }

  ExitStatus reap() const {
    int status = 0;
    pid_t reaped = 0;
    do {
      reaped = ::waitpid(pid_, &status, 0);
    } while (reaped < 0 && errno == EINTR);
    if (reaped < 0) {
      spdlog::warn("how the command ended is not known: somebody else waited for it");
      return ExitStatus{1, 0};
    }
    return WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
  }

  bool timed_out() const { return timed_out_; }
  bool stopped() const { return stopped_; }

 private:
  bool ended() const {
    siginfo_t info{};
    const int result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return result == 0 ? info.si_pid == pid_ : errno == ECHILD;
  }

  /// Sends TERM once, and after five seconds KILL, to everything it started.
  void end(std::int64_t now) {
    if (term_ns_ == 0) {
      term_ns_ = now;
      for (const std::int64_t pid : telemetry::process_tree(pid_, "/")) {
        if (const auto stat = telemetry::read_process_stat(pid, "/")) {
          tree_[pid] = stat->start_ticks;
        }
      }
      ::kill(own_group_ ? -pid_ : pid_, SIGTERM);
    } else if (now - term_ns_ > kPatience_ns) {
      for (const std::int64_t pid : telemetry::process_tree(pid_, "/")) {
        ::kill(static_cast<pid_t>(pid), SIGKILL);
      }
      if (own_group_) {
        ::kill(-pid_, SIGKILL);
      }
    }
  }

  /// Ends in the same way the processes that the command left behind in sessions of their own, as launchers of ranks
  /// start them.
  void end_left_behind() {
    for (bool told = false;; told = true) {
      std::erase_if(tree_, [this](const auto& process) {
        const auto stat = telemetry::read_process_stat(process.first, "/");
        return process.first == pid_ || !stat || stat->start_ticks != process.second || stat->state == 'Z';
      });
      const bool late = system_clock().now_ns() - term_ns_ > kPatience_ns;
      for (const auto& [pid, start] : tree_) {
        if (late || !told) {
          ::kill(static_cast<pid_t>(pid), late ? SIGKILL : SIGTERM);
        }
      }
      if (tree_.empty() || late) {
        return;
      }
      ::usleep(kWakeup_ms * 1000);
    }
  }

  pid_t pid_;
  bool own_group_;
  const Options& options_;
  OutputStreams& streams_;
  std::int64_t deadline_ns_;
  UniqueFd handle_;
  std::int64_t term_ns_ = 0;
  std::map<std::int64_t, std::uint64_t> tree_;  // pid and start time, when asked to end
  bool timed_out_ = false;
  bool stopped_ = false;
};

OutputStreams::Mode mode_of(const Options& options) {
  if (options.quiet) {
    return OutputStreams::Mode::kKeepOnly;
  }
  return options.capture ? OutputStreams::Mode::kPassOn : OutputStreams::Mode::kLeaveAlone;
}

/// Without pipes or terminals the command still runs, with its streams unchanged.
OutputStreams make_streams(const Options& options) {
  const std::size_t tail_bytes = options.quiet ? kQuietTailBytes : kTailBytes;
  try {
    return OutputStreams(mode_of(options), tail_bytes);
  } catch (const Error& error) {
    spdlog::warn("the end of the output is not kept: {}", error.what());
    return OutputStreams(OutputStreams::Mode::kLeaveAlone, tail_bytes);
  }
}

std::string_view outcome_of(const ExitStatus& status, const Supervisor& supervisor, int stop_signal) {
  if (supervisor.timed_out()) {
    return "timed-out";
  }
  if (supervisor.stopped() || stop_signal != 0) {
    return "stopped";
  }
  return status.ok() ? "completed" : "failed";
}

/// The folder of the probe files stays visible from outside.
std::unique_ptr<const Sandbox> sandbox_for(const Options& options, const Recorder& recorder) {
  if (!options.sandbox) {
    return nullptr;
  }
  SandboxOptions sandbox = *options.sandbox;
  if (const auto folder = recorder.probe_folder()) {
    sandbox.shared.push_back(*folder);
  }
  return make_sandbox(sandbox);
}

pid_t start_command(const Options& options, Recorder& recorder, const OutputStreams& streams,
                    const SignalForwarder& signals) {
  SpawnOptions spawning{options.argv, options.environment, options.folder.string(), options.quiet};
  if (const auto folder = recorder.probe_folder()) {
    spawning.environment["UNIDLE_PROBE_DIR"] = folder->string();
    if (options.python) {
      guarded("Python is not looked into", [&] { add_python_shim(spawning.environment); });
    }
  }
  try {
    const auto sandbox = sandbox_for(options, recorder);
    spawning.sandbox = sandbox.get();
    return spawn(spawning, streams, signals);
  } catch (...) {
    recorder.abandon();
    throw;
  }
}

}  // namespace

Result run(const Options& options) {
  if (options.argv.empty()) {
    throw Error(ErrorCode::kUsage, "command", "is missing", "name it after --");
  }
  SignalForwarder signals(options.forward_signals);
  OutputStreams streams = make_streams(options);
  Recorder recorder(options.record, options.argv);
  recorder.add_configured(options.configured);
  recorder.add_run_options(options.run_options);
  std::optional<OrphanReaper> leftovers;
  if (options.quiet) {
    leftovers.emplace();
  }
  const pid_t pid = start_command(options, recorder, streams, signals);
  signals.set_target(pid, options.quiet);
  Supervisor supervisor(pid, options.quiet, options, streams);
  streams.start();
  guarded("recording ends here", [&] { recorder.start(pid, streams); });
  if (options.recording && recorder.probe_folder()) {
    guarded("the record is not told of", [&] { options.recording(recorder.folder()); });
  }

  supervisor.wait_for_end();
  signals.clear_target();
  Result result;
  result.status = supervisor.reap();
  if (leftovers) {
    leftovers->end();
  }
  result.record = recorder.folder();
  result.timed_out = supervisor.timed_out();
  signals.stop_forwarding();
  streams.finish();
  signals.resume_forwarding();
  guarded("the end of the run is not recorded", [&] {
    recorder.finish(result.status, outcome_of(result.status, supervisor, signals.stop_signal()), options.before_close);
  });
  if (options.quiet) {
    result.out_tail = streams.tail(1);
    result.err_tail = streams.tail(2);
  }
  return result;
}

}  // namespace unidle::observe
