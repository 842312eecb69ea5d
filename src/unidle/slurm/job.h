// A job as Slurm describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace unidle::slurm {

/// Each task of an array is a job of its own. Fields that Slurm does not report are empty.
struct Job {
  std::string id;     // "4711"; array task "4711_2"; waiting tasks "4711_[3-9]"; part of a heterogeneous job "4711+1"
  std::string array;  // id of the array that the job belongs to
  std::string name, user, partition, account;
  std::string state;   // "PENDING", "RUNNING", "COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", ...
  std::string reason;  // why the job waits or ended
  std::string submitted, started, ended;  // local time, "2026-11-23T00:12:01"
  std::optional<double> elapsed_s, limit_s;
  int nodes = 0, cpus = 0, gpus = 0;  // summed over all nodes
  int tasks_per_node = 1;
  std::string node_list;               // "gpu[01-02]"
  std::optional<double> memory_bytes;  // requested, summed over all nodes
  int exit_code = 0, exit_signal = 0;
  std::filesystem::path folder, output;  // working folder; standard output
  std::string comment;
  bool step_out_of_memory = false;  // one of its steps was; the job itself may be FAILED
  // From accounting only.
  std::optional<double> cpu_time_s;  // summed over all processes
  /// Upper estimate of a node's peak: each task of a step counts as the largest one, and simultaneous steps add up.
  std::optional<double> peak_memory_bytes;

  /// The id in the names of the job's files: a heterogeneous job runs its script in the first part. Empty for the
  /// others.
  std::string id_of_files() const;
  /// Whether Slurm described the job; for an unknown or forgotten job only the id is set.
  bool known() const { return !state.empty(); }
  bool waits() const;
  bool runs() const;
  /// Whether the job ended unsuccessfully.
  bool failed() const;
  /// Whether the job was ended for using more memory than it had requested.
  bool out_of_memory() const;
};

/// A count; 0 for anything that is not a valid count.
int parse_count(std::string_view text);
/// "5-03:00:00", "03:00:00", "30:00" or "30" (minutes) in seconds; nothing for "UNLIMITED", invalid text and
/// implausible times. Source: sbatch(1), --time.
std::optional<double> parse_duration(std::string_view text);
/// Bytes of "2000M", "32G", "1.5T", "800K"; without a unit megabytes, as in sbatch(1). Nothing for implausible sizes.
std::optional<double> parse_memory(std::string_view text);
/// 5400 -> "1:30:00"; from one day on "5-03:00:00".
std::string format_duration(double seconds);
/// The number of `resource` in a list of trackable resources: "cpu=2,mem=400M,gres/gpu=2", "gres/gpu:a100=2".
int count_of(std::string_view resources, std::string_view resource);
/// The memory in such a list.
std::optional<double> memory_in(std::string_view resources);
/// The number of tasks on the node that has the most; at least one.
int tasks_on_each(int tasks, int nodes);
/// Parses "1:9": exit code and signal.
void parse_exit_code(std::string_view text, Job& job);

/// Parses a line of `scontrol --oneliner show job`: "JobId=1 JobName=my job UserId=...".
Job parse_scontrol(std::string_view line);

}  // namespace unidle::slurm
