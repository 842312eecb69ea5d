// Generates the script that is given to sbatch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace unidle::slurm {

struct JobRequest {
  std::vector<std::string> command;  // the command to observe
  std::filesystem::path unidle;      // path of our program on the nodes
  std::filesystem::path results;     // absolute; logs and records go there
  std::string name;
  std::string partition, account, qos, constraint;  // empty: the cluster's default
  int nodes = 1;
  int gpus = 1;  // per node
  std::string gpu_type;
  std::optional<int> cpus;  // per node
  std::string memory;       // per node, "32G"
  std::string time;         // "4:00:00"
  std::string array;        // "0-3%2"
  std::string signal;       // "INT@120": the signal, and the seconds before the time limit at which the command gets it
  bool requeue = false;     // a job ended by that signal is requeued
  bool processes = false;   // one process per GPU, started by torchrun on every node
  /// `command` is `unidle train`: it gets a folder for its checkpoints, and resumes from the last one when run again.
  bool trains = false;
  std::string scratch;  // a folder on each node's local disk, "/tmp" or "$SLURM_TMPDIR"; empty: not used
  std::vector<std::filesystem::path> staged;  // copied there before the command begins
  std::vector<std::string> before;            // shell lines: modules, a virtual environment
};

/// Returns a bash script with #SBATCH lines as in sbatch(1). Files in `results`; ID is the job's id, or ARRAY_TASK:
///   gpu_run_ID_detailed.log   output of the command
///   gpu_utilization_ID.log    the GPUs of the first node, in the columns of nvidia-smi, every ten seconds
///   unidle_ID/                the record; with several nodes unidle_ID/NODE/
///   checkpoints_ID/           of `unidle train`
/// With `scratch` the command gets a folder of its own there, removed at its end: $UNIDLE_SCRATCH, or {scratch} in its
/// words. Throws kUsage (subject: the option) for values that sbatch cannot accept.
std::string job_script(const JobRequest& request);

/// Makes the request run `unidle train CONFIG`; it is signalled two minutes before its limit and then writes a
/// checkpoint. Throws kInput (subject: the file) when `config` does not exist.
void train(JobRequest& request, const std::filesystem::path& config);

/// The comment by which a job's results are found: "unidle:/folder".
std::string comment_of(const std::filesystem::path& results);
/// The folder in such a comment; empty for any other comment.
std::filesystem::path results_in(const std::string& comment);

}  // namespace unidle::slurm
