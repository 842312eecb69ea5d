#include "unidle/telemetry/process_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

#include "unidle/telemetry/detail/text.h"

namespace unidle::telemetry {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 20> kLaunchers = {
    "sh",       "bash",   "dash",    "zsh",     "srun",       "slurmstepd", "slurm_script",
    "torchrun", "mpirun", "mpiexec", "orterun", "accelerate", "deepspeed",  "timeout",
    "time",     "nice",   "taskset", "numactl", "env",        "unidle"};

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The initial PID namespace has this fixed inode (PROC_PID_INIT_INO in the kernel).
bool in_initial_namespace(const fs::path& root) {
  std::error_code failure;
  return fs::read_symlink(root / "proc/self/ns/pid", failure) == "pid:[4026531836]";
}

/// Adds all pids of a process, from the outermost visible namespace to its own.
void add_numbers(std::int64_t pid, const fs::path& root, std::set<std::int64_t>& numbers) {
  numbers.insert(pid);
  std::istringstream words(
      detail::field(try_read_file(detail::process_folder(root, pid) / "status").value_or(""), "NSpid").value_or(""));
  for (std::int64_t number = 0; words >> number;) {
    numbers.insert(number);
  }
}

/// Returns what the environments of one job's ranks share, whichever launcher started them. Empty outside of a job and
/// for another user's process.
std::string job_of(std::int64_t pid, const fs::path& root) {
  constexpr std::array<std::string_view, 4> kNames = {
      "SLURM_JOB_ID=", "TORCHELASTIC_RUN_ID=", "MASTER_ADDR=", "MASTER_PORT="};
  std::array<std::string, kNames.size()> values;
  std::istringstream variables(try_read_file(detail::process_folder(root, pid) / "environ").value_or(""));
  for (std::string variable; std::getline(variables, variable, '\0');) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (variable.starts_with(kNames[i])) {
        values[i] = variable.substr(kNames[i].size());
      }
    }
  }
  const auto& [slurm, elastic, address, port] = values;
  if (!slurm.empty()) {
    return "slurm " + slurm;
  }
  // torchrun's default run id is "none".
  return address.empty() || port.empty() ? "" : fmt::format("{} {}:{}", elastic, address, port);
}

}  // namespace

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kTrainer: return "trainer";
    case Role::kLoader: return "loader";
    case Role::kLauncher: return "launcher";
    case Role::kHelper: return "helper";
  }
  return "trainer";
}

Role classify(const ProcessStat& stat, std::string_view command, std::string_view parent_command) {
  if (stat.name.starts_with("pt_data_")) {
    return Role::kLoader;
  }
  if (std::find(kLaunchers.begin(), kLaunchers.end(), stat.name) != kLaunchers.end() ||
      holds(command, "torch.distributed.run") || holds(command, "torch.distributed.launch") ||
      holds(command, "accelerate.commands")) {
    return Role::kLauncher;
  }
  for (const char* helper : {"resource_tracker", "semaphore_tracker", "multiprocessing.forkserver"}) {
    if (holds(command, helper)) {
      return Role::kHelper;
    }
  }
  if (holds(command, "multiprocessing.spawn") || holds(command, "--multiprocessing-fork") ||
      (!command.empty() && command == parent_command)) {
    return Role::kLoader;
  }
  return Role::kTrainer;
}

ProcessUseReader::ProcessUseReader(std::int64_t root_pid, fs::path root)
    : root_pid_(root_pid), root_(std::move(root)) {}

std::string ProcessUseReader::command_of(std::int64_t pid) {
  std::string command = try_read_file(detail::process_folder(root_, pid) / "cmdline").value_or("");
  std::replace(command.begin(), command.end(), '\0', ' ');
  return command;
}

Role ProcessUseReader::role_of(const ProcessStat& stat) {
  const auto known = known_.find(stat.pid);
  // Between fork and exec a child looks like its parent, so young processes are classified again.
  if (known != known_.end() && known->second.start_ticks == stat.start_ticks) {
    return known->second.role;
  }
  const std::string parent = stat.pid == root_pid_ ? "" : command_of(stat.parent);
  const Role role = classify(stat, command_of(stat.pid), parent);
  known_[stat.pid] = {stat.cpu_s > 0.1 ? stat.start_ticks : 0, role};
  return role;
}

std::vector<ProcessUse> ProcessUseReader::read() {
  std::vector<ProcessUse> found;
  for (const std::int64_t pid : process_tree(root_pid_, root_)) {
    if (auto stat = read_process_stat(pid, root_)) {
      const Role role = role_of(*stat);
      found.push_back({std::move(*stat), role, read_run_delay(pid, root_)});
    }
  }
  // A rank started by multiprocessing has loader processes of its own.
  for (ProcessUse& process : found) {
    const bool has_loaders = std::any_of(found.begin(), found.end(), [&](const ProcessUse& other) {
      return other.stat.parent == process.stat.pid && other.role == Role::kLoader;
    });
    if (process.role == Role::kLoader && has_loaders) {
      process.role = Role::kTrainer;
    }
  }
  std::erase_if(known_, [&](const auto& entry) {
    return std::none_of(found.begin(), found.end(), [&](const ProcessUse& p) { return p.stat.pid == entry.first; });
  });
  return found;
}

std::optional<double> read_run_delay(std::int64_t pid, const fs::path& root) {
  std::uint64_t total_ns = 0;
  bool any = false;
  std::error_code failure;
  for (fs::directory_iterator task(detail::process_folder(root, pid) / "task", failure), end; !failure && task != end;
       task.increment(failure)) {
    std::istringstream words(try_read_file(task->path() / "schedstat").value_or(""));  // ran, waited, slices
    std::uint64_t ran = 0;
    std::uint64_t waited = 0;
    std::uint64_t slices = 0;
    if (words >> ran >> waited >> slices && slices > 0) {  // "0 0 0": the kernel does not count
      total_ns += waited;
      any = true;
    }
  }
  return any ? std::optional(static_cast<double>(total_ns) * 1e-9) : std::nullopt;
}

std::optional<std::vector<GpuProcess>> foreign_processes(const std::vector<GpuProcess>& all,
                                                         const std::vector<std::int64_t>& tree, const fs::path& root) {
  std::set<std::int64_t> ours;
  std::string job;
  for (const std::int64_t pid : tree) {
    add_numbers(pid, root, ours);
    job = job.empty() ? job_of(pid, root) : job;
  }
  for (const GpuProcess& process : all) {
    if (!job.empty() && job_of(process.pid, root) == job) {
      ours.insert(process.pid);  // a rank started by another launcher on this machine
    }
  }
  std::vector<GpuProcess> foreign;
  std::copy_if(all.begin(), all.end(), std::back_inserter(foreign),
               [&](const GpuProcess& process) { return !ours.contains(process.pid); });
  if (foreign.size() == all.size() && !all.empty() && !in_initial_namespace(root)) {
    return std::nullopt;
  }
  return foreign;
}

}  // namespace unidle::telemetry
