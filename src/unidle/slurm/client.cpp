#include "unidle/slurm/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/split.h"
#include "unidle/slurm/accounting.h"

namespace unidle::slurm {

namespace {

constexpr std::chrono::seconds kLongest{60};

/// The message of Slurm's last line: "slurm_load_jobs error: Invalid job id specified" -> "Invalid job id specified".
std::string words_of(const Finished& finished) {
  std::string_view last;
  for (const std::string_view line : split(finished.err.empty() ? finished.out : finished.err, '\n')) {
    last = line.empty() ? last : line;
  }
  if (last.empty()) {
    return fmt::format("ended with code {}", finished.status.shell_code());
  }
  for (const std::string_view before : {"error: ", "failed: "}) {
    if (const std::size_t at = last.find(before); at != std::string_view::npos) {
      last.remove_prefix(at + before.size());
    }
  }
  return std::string(last);
}

bool says(const Finished& finished, std::string_view words) {
  return finished.err.find(words) != std::string::npos || finished.out.find(words) != std::string::npos;
}

}  // namespace

bool is_job_id(std::string_view text) {
  const std::size_t task = text.find_first_of("_+");
  const auto number = [](std::string_view part) {
    return !part.empty() && part.size() <= 10 && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return number(text.substr(0, task)) && (task == std::string_view::npos || number(text.substr(task + 1)));
}

Client::Client(Run run)
    : run_(run ? std::move(run) : [](const Command& command) { return run_to_end(command, kLongest); }) {}

Finished Client::asked(std::vector<std::string> argv) {
  const std::string program = argv.front();
  Command command;
  command.argv = std::move(argv);
  command.in = Command::Stream::kNull;
  command.environment = {{"LC_ALL", "C"}, {"SLURM_TIME_FORMAT", "standard"}};
  Finished finished;
  try {
    finished = run_(command);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInput) {
      throw;
    }
    throw Error(ErrorCode::kMissing, program, "was not found: this machine does not belong to a Slurm cluster",
                "run it on a login node, or load the module that brings Slurm's commands");
  }
  if (finished.timed_out) {
    throw Error(ErrorCode::kMissing, program, fmt::format("did not answer within {} s", kLongest.count()),
                "the controller may be down: scontrol ping");
  }
  if (!finished.status.ok() && (says(finished, "Unable to contact slurm controller") ||
                                says(finished, "Connection refused") || says(finished, "resolve_ctls"))) {
    throw Error(ErrorCode::kMissing, program, "Slurm's controller cannot be reached: " + words_of(finished),
                "scontrol ping says which one");
  }
  return finished;
}

std::string Client::submit(const std::filesystem::path& script, const std::filesystem::path& folder) {
  const Finished finished = asked({"sbatch", "--parsable", "--chdir=" + folder.string(), script.string()});
  const std::string id = finished.out.substr(0, finished.out.find_first_of(";\n"));  // "4711;cluster"
  if (!finished.status.ok() || !is_job_id(id)) {
    throw Error(ErrorCode::kChild, "sbatch", words_of(finished),
                "--dry-run prints the script; sinfo and `sacctmgr show assoc user=$USER` tell what you may ask for");
  }
  return id;
}

std::string submit(Client& client, const std::string& script, const std::filesystem::path& results) {
  const bool ours = !std::filesystem::exists(status_of(results));
  make_folders(results);
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "job.sh";
  write_file_atomic(file, script);
  try {
    return client.submit(file, std::filesystem::current_path());
  } catch (const Error&) {
    std::error_code ignored;
    if (ours) {
      std::filesystem::remove(results, ignored);  // only if empty
    }
    throw;
  }
}

std::vector<Job> Client::controller(const std::string& id) {
  std::vector<std::string> argv = {"scontrol", "--oneliner", "show", "job"};
  if (!id.empty()) {
    argv.push_back(id);
  }
  const Finished finished = asked(argv);
  if (!finished.status.ok()) {
    if (says(finished, "Invalid job id") || says(finished, "not found")) {
      return {};
    }
    throw Error(ErrorCode::kChild, "scontrol", words_of(finished));
  }
  std::vector<Job> jobs;
  for (const std::string_view line : split(finished.out, '\n')) {
    if (line.starts_with("JobId=")) {
      jobs.push_back(parse_scontrol(line));
    }
  }
  return jobs;
}

std::vector<Job> Client::accounting(const std::vector<std::string>& which) {
  std::vector<std::string> argv = sacct_command();
  argv.insert(argv.end(), which.begin(), which.end());
  try {
    const Finished finished = asked(argv);
    if (finished.status.ok()) {
      accounting_problem_.clear();
      return parse_sacct(finished.out);
    }
    accounting_problem_ = words_of(finished);
  } catch (const Error& error) {
    accounting_problem_ = error.message();
  }
  return {};
}

std::vector<Job> Client::find(const std::string& id) {
  if (!is_job_id(id)) {
    throw Error(ErrorCode::kUsage, id, "is not a job id",
                "4711, 4711_2 for a task of an array, or 4711+1 for a part of a heterogeneous job");
  }
  std::vector<Job> jobs = controller(id);
  std::vector<Job> accounted = accounting({"--jobs=" + id});
  if (jobs.empty()) {
    return accounted;
  }
  for (Job& job : jobs) {
    const auto same =
        std::find_if(accounted.begin(), accounted.end(), [&](const Job& other) { return other.id == job.id; });
    if (same != accounted.end()) {
      job.cpu_time_s = same->cpu_time_s;
      job.tasks_per_node = std::max(job.tasks_per_node, same->tasks_per_node);
      job.peak_memory_bytes = same->peak_memory_bytes;
      job.step_out_of_memory = same->step_out_of_memory;
    }
  }
  return jobs;
}

std::vector<Job> Client::of_user(const std::string& user, int days) {
  std::vector<Job> jobs = controller({});
  std::erase_if(jobs, [&](const Job& job) { return job.user != user; });
  std::set<std::string> known;
  for (const Job& job : jobs) {
    known.insert(job.id);
  }
  for (Job& job : accounting({"--user=" + user, fmt::format("--starttime=now-{}days", days)})) {
    if (known.insert(job.id).second) {
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

}  // namespace unidle::slurm
