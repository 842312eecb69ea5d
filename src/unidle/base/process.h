// Child processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/base/handle.h"

namespace unidle {

/// How a process ended.
struct ExitStatus {
  int code = 0;    // exit code, if signal is 0
  int signal = 0;  // the signal that killed it, otherwise 0

  bool ok() const { return code == 0 && signal == 0; }
  /// The exit code in a shell: the code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

struct Command {
  enum class Stream { kInherit, kNull, kPipe };

  std::vector<std::string> argv;                   // argv[0] is looked up in PATH
  std::map<std::string, std::string> environment;  // added to the inherited variables
  std::optional<std::filesystem::path> folder;     // working folder
  Stream in = Stream::kInherit;
  Stream out = Stream::kInherit;
  Stream err = Stream::kInherit;
  bool own_group = false;        // leads a new process group, so that kill() reaches its children too
  bool die_with_parent = false;  // SIGKILL when this process dies
};

/// A started child. The destructor kills it (or its group, if it leads one) and reaps it. Not thread-safe.
class ChildProcess {
 public:
  /// Throws kInput when the program cannot be found or executed (subject: argv[0]), kChild when fork fails.
  explicit ChildProcess(const Command& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// The write end of its stdin and the read ends of its output, for the streams set to kPipe.
  int in() const { return in_.get(); }
  /// The child then reads the end of its input.
  void close_in() { in_.reset(); }
  int out() const { return out_.get(); }
  int err() const { return err_.get(); }

  /// Reaps without blocking; returns the status once the child has ended.
  std::optional<ExitStatus> poll();
  ExitStatus wait();
  void kill(int signal);

 private:
  pid_t pid_ = -1;
  bool own_group_ = false;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  std::optional<ExitStatus> status_;
};

struct Finished {
  ExitStatus status;
  std::string out;
  std::string err;
  bool timed_out = false;  // killed because it exceeded its limit
};

/// Runs to the end and collects both streams. After `limit`, or when a stop is requested, the child's group gets
/// SIGTERM and five seconds later SIGKILL.
Finished run_to_end(Command command, std::optional<std::chrono::milliseconds> limit = std::nullopt,
                    std::stop_token stop = {});

}  // namespace unidle
