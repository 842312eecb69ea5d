// A job as Slurm tells of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace unidle::slurm {

/// Of an array each task is a job of its own. What Slurm does not tell is empty.
struct Job {
  std::string id;     // "4711", of an array's task "4711_2", of tasks that wait together "4711_[3-9]", of a part of a
                      // heterogeneous job "4711+1"
  std::string array;  // id of the array that it belongs to
  std::string name, user, partition, account;
  std::string state;   // "PENDING", "RUNNING", "COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", ...
  std::string reason;  // why it waits or ended
  std::string submitted, started, ended;  // local time, "2026-11-23T00:12:01"
  std::optional<double> elapsed_s, limit_s;
  int nodes = 0, cpus = 0, gpus = 0;  // of all nodes together
  int tasks_per_node = 1;
  std::string node_list;               // "gpu[01-02]"
  std::optional<double> memory_bytes;  // asked for, of all nodes together
  int exit_code = 0, exit_signal = 0;
  std::filesystem::path folder, output;  // working folder; standard output
  std::string comment;
  bool step_out_of_memory = false;  // a step of it was; the job itself may be FAILED
  // Of accounting alone.
  std::optional<double> cpu_time_s;  // used by all processes
  /// What a node needed at most: all tasks of a step count as much as its largest, and steps at one time add up.
  std::optional<double> peak_memory_bytes;

  /// The id that its files carry: a heterogeneous job runs its script in the first part. Empty for the other parts.
  std::string id_of_files() const;
  /// Slurm told of it; of a job that it does not know, or has forgotten, only the id is there.
  bool known() const { return !state.empty(); }
  bool waits() const;
  bool runs() const;
  /// It has ended, and not well.
  bool failed() const;
  /// It was ended because it used more memory than it had asked for.
  bool out_of_memory() const;
};

/// How many of something; 0 for what is no such number.
int parse_count(std::string_view text);
/// "5-03:00:00", "03:00:00", "30:00" or "30" (minutes) in seconds; nothing for "UNLIMITED", what is no time and one
/// that no job could take. Source: sbatch(1), --time.
std::optional<double> parse_duration(std::string_view text);
/// "2000M", "32G", "1.5T", "800K"; without a unit megabytes, as sbatch(1) has it. Nothing for what no machine has.
std::optional<double> parse_memory(std::string_view text);
/// 5400 -> "1:30:00", of a day and more "5-03:00:00".
std::string format_duration(double seconds);
/// The number of `resource` in a list of trackable resources: "cpu=2,mem=400M,gres/gpu=2", "gres/gpu:a100=2".
int count_of(std::string_view resources, std::string_view resource);
/// The memory in such a list.
std::optional<double> memory_in(std::string_view resources);
/// So many tasks run on the node that has most of them; at least one.
int tasks_on_each(int tasks, int nodes);
/// "1:9": exit code and signal.
void take_exit_code(std::string_view text, Job& job);

/// A line of `scontrol --oneliner show job`: "JobId=1 JobName=my job UserId=...".
Job parse_scontrol(std::string_view line);

}  // namespace unidle::slurm
