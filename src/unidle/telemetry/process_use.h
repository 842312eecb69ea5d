// The role of each process of a training command, its CPU time, and what it waits for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/files.h"
#include "unidle/telemetry/nvml.h"
#include "unidle/telemetry/process_tree.h"

namespace unidle::telemetry {

enum class Role {
  kTrainer,   // computes the steps
  kLoader,    // makes batches for a trainer
  kLauncher,  // a shell, or a program that starts ranks
  kHelper,    // a resource tracker or fork server
};
std::string_view to_string(Role role);

struct ProcessUse {
  ProcessStat stat;
  Role role = Role::kTrainer;
  std::optional<double> run_delay_s;  // runnable but not running, all threads; monotonic
};

/// Classifies by names and command lines: a loader process is a copy of its trainer (fork), or was started by Python's
/// multiprocessing (spawn, forkserver); torch names its own "pt_data_worker". `parent_command` is empty for the root.
Role classify(const ProcessStat& stat, std::string_view command, std::string_view parent_command);

/// Reads each process of a tree. Not thread-safe. Leaves out processes that have ended.
class ProcessUseReader {
 public:
  explicit ProcessUseReader(std::int64_t root_pid, std::filesystem::path root = host_root());

  std::vector<ProcessUse> read();

 private:
  Role role_of(const ProcessStat& stat);
  std::string command_of(std::int64_t pid);

  std::int64_t root_pid_;
  std::filesystem::path root_;
  struct Known {
    std::uint64_t start_ticks = 0;
    Role role = Role::kTrainer;
  };
  std::map<std::int64_t, Known> known_;
};

/// Time that the threads of a process were runnable but not running; absent when the kernel does not count it.
std::optional<double> read_run_delay(std::int64_t pid, const std::filesystem::path& root = host_root());

/// Returns the processes on a GPU that belong neither to `tree` nor to another rank of its job. A driver may use the
/// host's pids, which mean other processes or none in this container; returns nothing then, unless a process of the
/// tree is among them.
std::optional<std::vector<GpuProcess>> foreign_processes(const std::vector<GpuProcess>& all,
                                                         const std::vector<std::int64_t>& tree,
                                                         const std::filesystem::path& root = host_root());

}  // namespace unidle::telemetry
