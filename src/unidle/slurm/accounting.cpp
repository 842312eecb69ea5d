#include "unidle/slurm/accounting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "unidle/base/numbers.h"
#include "unidle/base/split.h"

namespace unidle::slurm {

namespace {

constexpr char kUnit = '\x1f';  // separates columns: no name contains it

using Columns = std::vector<std::string_view>;

/// The columns that sacct is asked for, in the order of kFormat.
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
    kTasks,
    kCount
  };
};
constexpr std::array<std::string_view, Column::kCount> kFormat = {
    "JobID",  "JobName",  "User",       "Partition", "Account", "State", "Reason",    "Submit",
    "Start",  "End",      "ElapsedRaw", "Timelimit", "NNodes",  "NCPUS", "AllocTRES", "TotalCPU",
    "MaxRSS", "ExitCode", "NodeList",   "WorkDir",   "Comment", "NTasks"};

std::string text_or_empty(std::string_view text) {
  return text == "None" || text == "Unknown" || text == "(null)" ? std::string() : std::string(text);
}

Job of_accounting(const Columns& columns) {
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
  if (const auto seconds = parse_number<std::int32_t>(columns[Column::kElapsed]); seconds && *seconds >= 0) {
    job.elapsed_s = *seconds;
  }
  job.limit_s = parse_duration(columns[Column::kLimit]);
  job.nodes = parse_count(columns[Column::kNodes]);
  job.cpus = parse_count(columns[Column::kCpus]);
  job.gpus = count_of(columns[Column::kResources], "gres/gpu");
  job.memory_bytes = memory_in(columns[Column::kResources]);
  parse_exit_code(columns[Column::kExit], job);
  job.node_list = text_or_empty(columns[Column::kNodeList]);
  job.folder = columns[Column::kFolder];
  job.comment = columns[Column::kComment];
  job.cpu_time_s = parse_duration(columns[Column::kCpuTime]);
  return job;
}

/// sacct writes a unit, except for a number of bytes (--noconvert).
std::optional<double> parse_peak(std::string_view text) {
  const auto bytes = parse_number<double>(text);
  return bytes && *bytes >= 0 ? bytes : parse_memory(text);
}

/// The largest memory of a step's tasks on one node, from begin to end.
struct StepMemory {
  std::string_view start, end;  // "2026-11-23T00:12:01": text order is time order
  double bytes = 0;
};

/// Steps of a job may run one after the other or at once: the largest sum of steps that ran at one moment.
std::optional<double> most_at_once(const std::vector<StepMemory>& steps) {
  std::vector<std::pair<std::string, double>> changes;
  for (const StepMemory& step : steps) {
    changes.emplace_back(step.start, step.bytes);
    // "~" sorts after every time: for a step that still runs, or one that ended in the second in which it began.
    changes.emplace_back(step.end > step.start ? std::string(step.end) : std::string(step.start) + "~", -step.bytes);
  }
  std::sort(changes.begin(), changes.end());  // at the same time, releases sort first
  double now = 0;
  std::optional<double> most;
  for (const auto& [time, bytes] : changes) {
    now += bytes;
    most = std::max(most.value_or(0), now);
  }
  return most;
}

}  // namespace

std::vector<std::string> sacct_command() {
  return {"sacct", "--parsable2", "--noheader", fmt::format("--delimiter={}", kUnit),
          fmt::format("--format={}", fmt::join(kFormat, ","))};
}

std::vector<Job> parse_sacct(std::string_view text) {
  std::vector<Job> jobs;
  std::vector<std::vector<StepMemory>> memory;  // of each job
  for (const std::string_view line : split(text, '\n')) {
    Columns columns = split(line, kUnit);
    columns.resize(Column::kCount);
    const std::string_view id = columns[Column::kId];
    const std::size_t point = id.find('.');
    if (!id.empty() && point == std::string_view::npos) {
      jobs.push_back(of_accounting(columns));
      memory.emplace_back();
      continue;
    }
    // A step of a job listed above: "4711.batch", "4711.0", "4711+1.0" of a heterogeneous job's part.
    const auto job =
        std::find_if(jobs.rbegin(), jobs.rend(), [&](const Job& one) { return one.id == id.substr(0, point); });
    if (id.empty() || job == jobs.rend()) {
      continue;
    }
    job->step_out_of_memory |= columns[Column::kState].starts_with("OUT_OF_ME");
    const int tasks = tasks_on_each(parse_count(columns[Column::kTasks]), parse_count(columns[Column::kNodes]));
    job->tasks_per_node = std::max(job->tasks_per_node, tasks);
    // A step without measurements, such as `extern`, reports 0.
    if (const auto peak = parse_peak(columns[Column::kPeakMemory]); peak && *peak > 0) {
      memory[static_cast<std::size_t>(jobs.rend() - job) - 1].push_back(
          {columns[Column::kStart], columns[Column::kEnd], *peak * tasks});
    }
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].peak_memory_bytes = most_at_once(memory[i]);
  }
  return jobs;
}

}  // namespace unidle::slurm
