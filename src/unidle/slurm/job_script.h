// The script that sbatch is given.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace unidle::slurm {

struct JobRequest {
  std::vector<std::string> command;  // that is observed
  std::filesystem::path unidle;      // the program, as the nodes see it
  std::filesystem::path results;     // absolute; logs and records go there
  std::string name;
  std::string partition, account, qos, constraint;  // empty: the cluster's default
  int nodes = 1;
  int gpus = 1;  // of each node
  std::string gpu_type;
  std::optional<int> cpus;  // of each node's task
  std::string memory;       // of each node, "32G"
  std::string time;         // "4:00:00"
  std::string array;        // "0-3%2"
  std::string signal;       // "INT@120": the command gets it so many seconds before its limit
  bool requeue = false;     // ended by that signal, it is put in the queue again
  bool processes = false;   // one process a GPU, started by torchrun on every node
  /// `command` is `unidle train`: it gets a folder for its checkpoints, and goes on from the last one when it runs
  /// again.
  bool trains = false;
  std::string scratch;  // a folder of each node's own disk, "/tmp" or "$SLURM_TMPDIR"; empty: none is used
  std::vector<std::filesystem::path> staged;  // copied into it before the command begins
  std::vector<std::string> before;            // lines of shell: modules, a virtual environment
};

/// A bash script with #SBATCH lines as in sbatch(1). Files in `results`, ID being the job's, or ARRAY_TASK:
///   gpu_run_ID_detailed.log   what the command prints
///   gpu_utilization_ID.log    the GPUs of the first node, in the columns of nvidia-smi, every ten seconds
///   unidle_ID/                the record; of several nodes unidle_ID/NODE/
///   checkpoints_ID/           of `unidle train`
/// With `scratch` the command has a folder of its own in it, $UNIDLE_SCRATCH and {scratch} in its words, which is
/// removed when it ends. Throws kUsage (subject: the option) for what sbatch cannot be asked for.
std::string job_script(const JobRequest& request);

/// `unidle train CONFIG` as a job, which is told two minutes before its limit and writes a checkpoint then. Throws
/// kInput (subject: the file) when there is none.
void train(JobRequest& request, const std::filesystem::path& config);

/// The comment by which a job's results are found again: "unidle:/folder".
std::string comment_of(const std::filesystem::path& results);
/// The folder in such a comment; empty when it is none of ours.
std::filesystem::path results_in(const std::string& comment);

}  // namespace unidle::slurm
