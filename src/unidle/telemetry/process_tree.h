// A command and everything it started, read from /proc under host_root().
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/files.h"

namespace unidle::telemetry {

/// One line of /proc/PID/stat, as far as it is used.
struct ProcessStat {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::string name;
  char state = '?';
  double cpu_s = 0;           // of its own
  double children_cpu_s = 0;  // of the children it has waited for
  int threads = 0;
  std::uint64_t rss_bytes = 0;
  std::uint64_t start_ticks = 0;   // with the pid, who it is
  std::uint64_t minor_faults = 0;  // pages that were found in memory
  std::uint64_t major_faults = 0;  // pages that were read from storage
  double io_delay_s = 0;           // waited for block devices; zero too where the kernel does not account for it
};

/// Nothing when the process is gone or the text is malformed. The name may hold blanks and brackets.
std::optional<ProcessStat> parse_process_stat(std::string_view text);
std::optional<ProcessStat> read_process_stat(std::int64_t pid, const std::filesystem::path& root = host_root());

/// The pids of `root_pid`'s tree, itself first, as of now.
std::vector<std::int64_t> process_tree(std::int64_t root_pid, const std::filesystem::path& root = host_root());

struct TreeUsage {
  double cpu_s = 0;  // of all, those that have ended included; only grows
  std::uint64_t rss_bytes = 0;
  std::optional<std::uint64_t> pss_bytes;   // shared pages counted once; only when asked for
  std::optional<std::uint64_t> read_bytes;  // from storage, the same; absent when the kernel does not say
  int processes = 0;
  int threads = 0;
  int in_disk_wait = 0;            // processes in state D
  double io_delay_s = 0;           // of the processes that are there now
  std::uint64_t major_faults = 0;  // the same
};

/// Follows one tree. Not thread-safe. A process that cannot be read any more has ended; that is never an error.
class ProcessTreeReader {
 public:
  explicit ProcessTreeReader(std::int64_t root_pid, std::filesystem::path root = host_root());

  /// `rediscover`: look for new processes (else only those known are read); `proportional`: fill pss_bytes, which
  /// makes the kernel walk page tables.
  TreeUsage read(bool rediscover, bool proportional);

 private:
  std::int64_t root_pid_;
  std::filesystem::path root_;
  std::vector<std::int64_t> pids_;
  double cpu_s_ = 0;
  std::optional<std::uint64_t> read_bytes_;
};

}  // namespace unidle::telemetry
