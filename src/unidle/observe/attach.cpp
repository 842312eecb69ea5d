#include "unidle/observe/attach.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/handle.h"
#include "unidle/base/json.h"
#include "unidle/base/process.h"
#include "unidle/observe/output.h"
#include "unidle/observe/recorder.h"
#include "unidle/telemetry/process_tree.h"

namespace unidle::observe {

namespace fs = std::filesystem;

namespace {

constexpr int kLook_ms = 50;
constexpr int kReaped_ms = 1000;  // how long its parent may take to wait for it

/// PIDFD_GET_INFO of Linux 6.15 and later, which older headers lack.
struct PidfdInfo {
  std::uint64_t mask = 1U << 3;  // PIDFD_INFO_EXIT
  std::uint64_t cgroup = 0;
  std::uint32_t ids[11] = {};
  std::int32_t exit_code = 0;
};
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid), handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
    const auto stat = telemetry::read_process_stat(pid, "/");
    if (!stat) {
      throw Error(ErrorCode::kInput, std::to_string(pid), "is no process", "it may have ended");
    }
    start_ticks_ = stat->start_ticks;
  }

  /// Waits a moment. Returns whether it has ended.
  bool ends() const {
    if (handle_) {
      pollfd wait{handle_.get(), POLLIN, 0};
      return ::poll(&wait, 1, kLook_ms) > 0;
    }
    ::usleep(kLook_ms * 1000);  // an older kernel without pidfd
    const auto stat = telemetry::read_process_stat(pid_, "/");
    return !stat || stat->start_ticks != start_ticks_ || stat->state == 'Z';
  }

  /// How it ended. The kernel tells only its parent, and since Linux 6.15 us.
  std::optional<ExitStatus> status() const {
    if (!handle_) {
      return std::nullopt;
    }
    pollfd reaped{handle_.get(), 0, 0};  // POLLHUP always counts
    PidfdInfo info;
    if (::poll(&reaped, 1, kReaped_ms) <= 0 || ::ioctl(handle_.get(), kPidfdGetInfo, &info) != 0 ||
        (info.mask & (1U << 3)) == 0) {
      return std::nullopt;
    }
    return WIFSIGNALED(info.exit_code) ? ExitStatus{0, WTERMSIG(info.exit_code)}
                                       : ExitStatus{WEXITSTATUS(info.exit_code), 0};
  }

 private:
  pid_t pid_;
  UniqueFd handle_;
  std::uint64_t start_ticks_ = 0;
};

struct End {
  std::optional<ExitStatus> status;
  std::string outcome;
};

/// What the process itself says; nothing while it has not.
std::optional<End> told_end(const fs::path& file) {
  std::error_code unknown;
  if (!fs::exists(file, unknown)) {
    return std::nullopt;
  }
  End end{std::nullopt, "completed"};
  try {
    const nlohmann::json body = parse_json(read_file(file));
    if (const auto code = whole_in(body, "code")) {
      end.status = ExitStatus{static_cast<int>(*code), 0};
    }
    const std::string outcome = text_in(body, "outcome");
    end.outcome = outcome == "failed" || outcome == "stopped" ? outcome : "completed";
    return end;
  } catch (const std::exception&) {
    return end;  // what it says is damaged; that it ends is clear
  }
}

End wait_for_end(const Process& process, const fs::path& file) {
  for (;;) {
    const bool ended = process.ends();
    if (const auto told = told_end(file)) {
      return *told;
    }
    if (ended) {
      End end{process.status(), ""};
      if (end.status) {
        end.outcome = end.status->ok() ? "completed" : "failed";
      }
      return end;
    }
  }
}

}  // namespace

fs::path attach(const AttachOptions& options) {
  const Process process(options.pid);
  const OutputStreams streams(OutputStreams::Mode::kLeaveAlone, 0);
  Recorder recorder(options.record, options.argv);
  const auto probe = recorder.probe_folder();
  if (!probe) {
    throw Error(ErrorCode::kIo, options.record.string(), "cannot be written", "choose another folder");
  }
  recorder.add_configured(options.configured);
  recorder.start(options.tree != 0 ? options.tree : options.pid, streams);
  options.recording(recorder.folder(), *probe);
  const End end = wait_for_end(process, *probe / kEndFile);
  recorder.finish(end.status, end.outcome, {});
  std::error_code ignored;
  fs::remove(*probe / kEndFile, ignored);
  return recorder.folder();
}

}  // namespace unidle::observe
