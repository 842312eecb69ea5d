#include "unidle/slurm/accounting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "unidle/base/numbers.h"
#include "unidle/base/split.h"

namespace unidle::slurm {

namespace {

constexpr char kUnit = '\x1f';  // between columns: no name holds it

using Columns = std::vector<std::string_view>;

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
  take_exit_code(columns[Column::kExit], job);
  job.node_list = text_or_empty(columns[Column::kNodeList]);
  job.folder = columns[Column::kFolder];
  job.comment = columns[Column::kComment];
  job.cpu_time_s = parse_duration(columns[Column::kCpuTime]);
  return job;
}

}  // namespace

std::vector<std::string> sacct_command() {
  return {"sacct", "--parsable2", "--noheader", fmt::format("--delimiter={}", kUnit),
          fmt::format("--format={}", fmt::join(kFormat, ","))};
}

std::vector<Job> parse_sacct(std::string_view text) {
  std::vector<Job> jobs;
  for (const std::string_view line : split(text, '\n')) {
    Columns columns = split(line, kUnit);
    columns.resize(Column::kCount);
    const std::string_view id = columns[Column::kId];
    if (id.empty()) {
      continue;
    }
    if (id.find('.') == std::string_view::npos) {
      jobs.push_back(of_accounting(columns));
    } else if (!jobs.empty()) {  // a step of the job above: "4711.batch", "4711.0"
      if (const auto peak = parse_memory(columns[Column::kPeakMemory])) {
        jobs.back().peak_memory_bytes = std::max(jobs.back().peak_memory_bytes.value_or(0), *peak);
      }
      jobs.back().step_out_of_memory |= columns[Column::kState].starts_with("OUT_OF_ME");
    }
  }
  return jobs;
}

}  // namespace unidle::slurm
