#include "unidle/slurm/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "unidle/base/error.h"
#include "unidle/base/numbers.h"

namespace unidle::slurm {

namespace {

constexpr std::chrono::seconds kLongest{60};
constexpr char kUnit = '\x1f';  // no name holds it

/// What sacct is asked for, in the order of kFormat.
struct Column {
  enum : std::size_t {
    kId,
    kName,
    kUser,
    kPartition,
    kAccount,
    kState,
    kReason,
    kSubmit,
    kStart,
    kEnd,
    kElapsed,
    kLimit,
    kNodes,
    kCpus,
    kResources,
    kCpuTime,
    kPeakMemory,
    kExit,
    kNodeList,
    kFolder,
    kComment,
    kCount
  };
};
constexpr std::array<std::string_view, Column::kCount> kFormat = {
    "JobID",     "JobName",  "User",   "Partition",  "Account",   "State",   "Reason",
    "Submit",    "Start",    "End",    "ElapsedRaw", "Timelimit", "NNodes",  "NCPUS",
    "AllocTRES", "TotalCPU", "MaxRSS", "ExitCode",   "NodeList",  "WorkDir", "Comment"};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) {
      lines.push_back(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return lines;
}

/// Slurm's last words: "slurm_load_jobs error: Invalid job id specified" -> "Invalid job id specified".
std::string words_of(const Finished& finished) {
  const std::vector<std::string> lines = lines_of(finished.err.empty() ? finished.out : finished.err);
  if (lines.empty()) {
    return fmt::format("ended with code {}", finished.status.shell_code());
  }
  std::string_view last = lines.back();
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

std::string text_or_empty(std::string_view text) {
  return text == "None" || text == "Unknown" || text == "(null)" ? std::string() : std::string(text);
}

Job of_accounting(const std::vector<std::string>& columns) {
  Job job;
  job.id = columns[Column::kId];
  if (const std::size_t task = job.id.find('_'); task != std::string::npos) {
    job.array = job.id.substr(0, task);
  }
  job.name = columns[Column::kName];
  job.user = columns[Column::kUser];
  job.partition = columns[Column::kPartition];
  job.account = columns[Column::kAccount];
  job.state = columns[Column::kState].substr(0, columns[Column::kState].find(' '));  // "CANCELLED by 1000"
  job.reason = text_or_empty(columns[Column::kReason]);
  job.submitted = text_or_empty(columns[Column::kSubmit]);
  job.started = text_or_empty(columns[Column::kStart]);
  job.ended = text_or_empty(columns[Column::kEnd]);
  job.elapsed_s = parse_number<double>(columns[Column::kElapsed]);
  job.limit_s = parse_duration(columns[Column::kLimit]);
  job.nodes = parse_number<int>(columns[Column::kNodes]).value_or(0);
  job.cpus = parse_number<int>(columns[Column::kCpus]).value_or(0);
  job.gpus = count_of(columns[Column::kResources], "gres/gpu");
  if (const std::size_t at = columns[Column::kResources].find("mem="); at != std::string::npos) {
    const std::string_view memory = std::string_view(columns[Column::kResources]).substr(at + 4);
    job.memory_bytes = parse_memory(memory.substr(0, memory.find(',')));
  }
  const std::string& exit = columns[Column::kExit];
  const std::size_t colon = std::min(exit.find(':'), exit.size());
  job.exit_code = parse_number<int>(std::string_view(exit).substr(0, colon)).value_or(0);
  job.exit_signal = colon < exit.size() ? parse_number<int>(std::string_view(exit).substr(colon + 1)).value_or(0) : 0;
  job.node_list = text_or_empty(columns[Column::kNodeList]);
  job.folder = columns[Column::kFolder];
  job.comment = columns[Column::kComment];
  job.cpu_time_s = parse_duration(columns[Column::kCpuTime]);
  return job;
}

}  // namespace

bool is_job_id(std::string_view text) {
  const std::size_t task = text.find('_');
  const auto number = [](std::string_view part) {
    return !part.empty() && part.size() <= 10 && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return number(text.substr(0, task)) && (task == std::string_view::npos || number(text.substr(task + 1)));
}

std::vector<Job> parse_sacct(std::string_view text) {
  std::vector<Job> jobs;
  for (const std::string& line : lines_of(std::string(text))) {
    std::vector<std::string> columns(1);
    for (const char c : line) {
      if (c == kUnit) {
        columns.emplace_back();
      } else {
        columns.back().push_back(c);
      }
    }
    columns.resize(Column::kCount);
    const std::string& id = columns[Column::kId];
    if (id.find('.') == std::string::npos) {
      jobs.push_back(of_accounting(columns));
    } else if (!jobs.empty()) {  // a step of the job above: "4711.batch", "4711.0"
      if (const auto peak = parse_memory(columns[Column::kPeakMemory])) {
        jobs.back().peak_memory_bytes = std::max(jobs.back().peak_memory_bytes.value_or(0), *peak);
      }
    }
  }
  return jobs;
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
    throw Error(ErrorCode::kMissing, program, "is not here: this is no machine of a Slurm cluster",
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
  for (const std::string& line : lines_of(finished.out)) {
    if (line.starts_with("JobId=")) {
      jobs.push_back(parse_scontrol(line));
    }
  }
  return jobs;
}

std::vector<Job> Client::accounting(const std::vector<std::string>& which) {
  std::vector<std::string> argv = {"sacct", "--parsable2", "--noheader", fmt::format("--delimiter={}", kUnit)};
  argv.push_back(fmt::format("--format={}", fmt::join(kFormat, ",")));
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
    throw Error(ErrorCode::kUsage, id, "is no job id", "4711, or 4711_2 for a task of an array");
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
      job.peak_memory_bytes = same->peak_memory_bytes;
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
