// Slurm's own commands: squeue, scontrol, sacct, sbatch.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "unidle/base/process.h"
#include "unidle/slurm/job.h"

namespace unidle::slurm {

/// Runs Slurm's programs, as a user would. Not thread-safe. Every call throws kMissing when the program is not
/// installed (this machine is not part of a cluster) or the controller is unreachable, and kChild with Slurm's own
/// message when Slurm refuses.
class Client {
 public:
  using Run = std::function<Finished(const Command&)>;

  /// `run` is for tests; the default starts a process with a timeout of one minute.
  explicit Client(Run run = {});

  /// Submits the script and returns the job's id. The job runs in `folder`.
  std::string submit(const std::filesystem::path& script, const std::filesystem::path& folder);
  /// The job, or each task of an array. Asks the controller, which forgets a job some minutes after its end, then
  /// accounting. Empty when neither knows the job. Throws kUsage for an invalid id.
  std::vector<Job> find(const std::string& id);
  /// All jobs of a user that wait, run or ended recently; with accounting, those of the last `days`.
  std::vector<Job> of_user(const std::string& user, int days);
  /// Why accounting has no answer, or empty. Set by find() and of_user().
  const std::string& accounting_problem() const { return accounting_problem_; }

 private:
  Finished asked(std::vector<std::string> argv);
  std::vector<Job> controller(const std::string& id);
  std::vector<Job> accounting(const std::vector<std::string>& which);

  Run run_;
  std::string accounting_problem_;
};

/// "4711", "4711_2"
bool is_job_id(std::string_view text);

/// Creates the folder `results`, which the job's log needs, submits the script and returns the job's id. The job runs
/// in the current folder. When Slurm refuses the job, a folder created here is removed again.
std::string submit(Client& client, const std::string& script, const std::filesystem::path& results);

}  // namespace unidle::slurm
