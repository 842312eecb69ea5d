// Reads a command and all its descendants from /proc under host_root().
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/files.h"

namespace unidle::telemetry {

/// The fields of /proc/PID/stat that we use.
struct ProcessStat {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::string name;
  char state = '?';
  double cpu_s = 0;           // its own
  double children_cpu_s = 0;  // of the children it has waited for
  int threads = 0;
  std::uint64_t rss_bytes = 0;
  std::uint64_t start_ticks = 0;   // identifies the process together with its pid
  std::uint64_t major_faults = 0;  // pages read from storage
  double io_delay_s = 0;  // time spent waiting for block devices; also zero when the kernel does not account for it
};

/// Returns nothing when the process is gone or the text is malformed. The name may contain blanks and brackets.
std::optional<ProcessStat> parse_process_stat(std::string_view text);
std::optional<ProcessStat> read_process_stat(std::int64_t pid, const std::filesystem::path& root = host_root());

/// Returns the pids of `root_pid`'s tree, root first.
std::vector<std::int64_t> process_tree(std::int64_t root_pid, const std::filesystem::path& root = host_root());

struct TreeUsage {
  double cpu_s = 0;  // of all processes, including ended ones; monotonic
  std::uint64_t rss_bytes = 0;
  std::optional<std::uint64_t> pss_bytes;   // counts shared pages once; only on request
  std::optional<std::uint64_t> read_bytes;  // from storage, also cumulative; absent when the kernel does not report it
  int processes = 0;
  int threads = 0;
  int in_disk_wait = 0;            // processes in state D
  double io_delay_s = 0;           // of the live processes
  std::uint64_t major_faults = 0;  // of the live processes
};

/// Follows one tree. Not thread-safe. A process that can no longer be read counts as ended, which is not an error.
class ProcessTreeReader {
 public:
  explicit ProcessTreeReader(std::int64_t root_pid, std::filesystem::path root = host_root());

  /// `rediscover`: look for new processes, otherwise read only known ones. `proportional`: fill pss_bytes, for which
  /// the kernel walks page tables.
  TreeUsage read(bool rediscover, bool proportional);

 private:
  std::int64_t root_pid_;
  std::filesystem::path root_;
  std::vector<std::int64_t> pids_;
  double cpu_s_ = 0;
  std::optional<std::uint64_t> read_bytes_;
};

}  // namespace unidle::telemetry
