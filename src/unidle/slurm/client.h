// Slurm's own commands: squeue, scontrol, sacct, sbatch.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "unidle/base/process.h"
#include "unidle/slurm/job.h"

namespace unidle::slurm {

/// Asks Slurm through its programs, as a user would. Not thread-safe. Every call throws kMissing when the program is
/// not there (this is no machine of a cluster) or the controller cannot be reached, kChild with Slurm's own words when
/// it refuses.
class Client {
 public:
  using Run = std::function<Finished(const Command&)>;

  /// `run` is for tests; by default a real process, of at most a minute.
  explicit Client(Run run = {});

  /// Hands the script over; the job's id. `folder` is where the job runs.
  std::string submit(const std::filesystem::path& script, const std::filesystem::path& folder);
  /// The job, or each task of an array; from the controller, which forgets a job some minutes after its end, and then
  /// from accounting. Empty when neither knows it. Throws kUsage for what is no id.
  std::vector<Job> find(const std::string& id);
  /// All of a user's that wait, run or ended a short while ago; with accounting, of the last `days`.
  std::vector<Job> of_user(const std::string& user, int days);
  /// Why accounting says nothing, or an empty text. After find() or of_user().
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

/// Makes the folder `results`, which the job's log needs, and hands the script over; the job's id. It runs in the
/// folder that we are in. When Slurm refuses the job, a folder that was made for it is gone again.
std::string submit(Client& client, const std::string& script, const std::filesystem::path& results);

}  // namespace unidle::slurm
