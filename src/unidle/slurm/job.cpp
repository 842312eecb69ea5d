#include "unidle/slurm/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "unidle/base/numbers.h"
#include "unidle/base/split.h"

namespace unidle::slurm {

namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

/// "Key=value Key=value": values may contain blanks; keys begin with a capital and contain none.
Fields parse_fields(std::string_view line) {
  const auto is_key = [](std::string_view word) {
    const std::size_t equals = word.find('=');
    return equals != std::string_view::npos && equals > 0 && std::isupper(static_cast<unsigned char>(word[0])) != 0 &&
           std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
             return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                    std::string_view("/:_-").find(c) != std::string_view::npos;
           });
  };
  Fields fields;
  std::string* last = nullptr;
  for (const std::string_view word : split(line, ' ')) {
    if (is_key(word)) {
      const std::size_t equals = word.find('=');
      // The first occurrence wins: fields written by users (command, comment) come after Slurm's own.
      const auto [at, added] =
          fields.try_emplace(std::string(word.substr(0, equals)), std::string(word.substr(equals + 1)));
      last = added ? &at->second : nullptr;
    } else if (last != nullptr) {
      *last += ' ';
      *last += word;
    }
  }
  for (auto& [key, value] : fields) {
    value.erase(value.find_last_not_of(' ') + 1);
    if (value == "(null)" || value == "N/A" || value == "Unknown") {
      value.clear();
    }
  }
  return fields;
}

std::string text_of(const Fields& fields, std::string_view key) {
  const auto at = fields.find(key);
  return at == fields.end() ? std::string() : at->second;
}

int number_of(const Fields& fields, std::string_view key) {
  const std::string text = text_of(fields, key);
  return parse_count(std::string_view(text).substr(0, text.find('-')));
}

/// Larger values are not valid times or sizes, and would overflow the integers that are shown.
constexpr double kMost_s = 1e12;
constexpr double kMostBytes = 0x1p60;

/// A sum or product of counts, limited to the largest int.
int capped(std::int64_t count) {
  return static_cast<int>(std::min<std::int64_t>(count, std::numeric_limits<int>::max()));
}

}  // namespace

bool Job::waits() const {
  return state == "PENDING" || state == "REQUEUED" || state == "REQUEUE_HOLD" || state == "CONFIGURING";
}

bool Job::runs() const {
  return state == "RUNNING" || state == "COMPLETING" || state == "SUSPENDED" || state == "STOPPED";
}

bool Job::failed() const { return known() && !waits() && !runs() && state != "COMPLETED"; }

bool Job::out_of_memory() const {
  constexpr int kOutOfMemory = 125;  // not a signal of the system: Slurm's own marker
  return state == "OUT_OF_MEMORY" || (failed() && (exit_signal == kOutOfMemory || step_out_of_memory));
}

int parse_count(std::string_view text) { return std::max(0, parse_number<int>(text).value_or(0)); }

std::optional<double> parse_duration(std::string_view text) {
  double days = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto number = parse_number<double>(text.substr(0, dash));
    if (!number || *number < 0) {
      return std::nullopt;
    }
    days = *number;
    text = text.substr(dash + 1);
  }
  std::vector<double> parts;
  for (const std::string_view part : split(text, ':')) {
    const auto number = parse_number<double>(part);
    if (!number || *number < 0) {
      return std::nullopt;
    }
    parts.push_back(*number);
  }
  if (parts.size() > 3) {
    return std::nullopt;
  }
  // With days the first part is hours; otherwise one or two parts begin with minutes.
  const bool hours_first = dash != std::string_view::npos || parts.size() == 3;
  parts.resize(3);
  const double seconds =
      days * 86400 + (hours_first ? parts[0] * 3600 + parts[1] * 60 + parts[2] : parts[0] * 60 + parts[1]);
  return seconds <= kMost_s ? std::optional(seconds) : std::nullopt;
}

std::optional<double> parse_memory(std::string_view text) {
  double unit = 0x1p20;
  if (!text.empty() && (text.back() == 'n' || text.back() == 'c')) {  // sacct before version 21: per node, per CPU
    text.remove_suffix(1);
  }
  if (!text.empty()) {
    const std::size_t power =
        std::string_view("KMGTP").find(static_cast<char>(std::toupper(static_cast<unsigned char>(text.back()))));
    if (power != std::string_view::npos) {
      unit = std::exp2(10.0 * static_cast<double>(power + 1));
      text.remove_suffix(1);
    }
  }
  const auto number = parse_number<double>(text);
  return number && *number >= 0 && *number * unit <= kMostBytes ? std::optional(*number * unit) : std::nullopt;
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(0.0, seconds));
  const std::string clock = fmt::format("{}:{:02}:{:02}", whole / 3600 % 24, whole / 60 % 60, whole % 60);
  return whole < 86400 ? clock : fmt::format("{}-{:0>8}", whole / 86400, clock);
}

int count_of(std::string_view resources, std::string_view resource) {
  std::int64_t untyped = 0;
  std::int64_t typed = 0;  // "gres/gpu=2,gres/gpu:a100=2" counts the same GPUs twice
  for (const std::string_view part : split(resources, ',')) {
    const std::size_t equals = part.rfind('=');
    if (equals == std::string_view::npos) {
      continue;
    }
    const std::string_view name = part.substr(0, equals);
    const int count = parse_count(part.substr(equals + 1));
    if (name == resource) {
      untyped += count;
    } else if (name.starts_with(resource) && name.substr(resource.size()).starts_with(':')) {
      typed += count;
    }
  }
  return capped(untyped > 0 ? untyped : typed);
}

std::optional<double> memory_in(std::string_view resources) {
  for (const std::string_view part : split(resources, ',')) {
    if (part.starts_with("mem=")) {
      return parse_memory(part.substr(4));
    }
  }
  return std::nullopt;
}

void parse_exit_code(std::string_view text, Job& job) {
  const std::vector<std::string_view> parts = split(text, ':');
  job.exit_code = parse_number<int>(parts.front()).value_or(0);
  job.exit_signal = parts.size() > 1 ? parse_number<int>(parts[1]).value_or(0) : 0;
}

std::string Job::id_of_files() const {
  const std::size_t plus = id.find('+');
  const bool first = plus == std::string::npos || std::string_view(id).substr(plus) == "+0";
  return first ? id.substr(0, plus) : std::string();
}

int tasks_on_each(int tasks, int nodes) {
  nodes = std::max(1, nodes);
  return std::max(1, tasks / nodes + (tasks % nodes > 0 ? 1 : 0));
}

Job parse_scontrol(std::string_view line) {
  const Fields fields = parse_fields(line);
  Job job;
  job.id = text_of(fields, "JobId");
  job.array = text_of(fields, "ArrayJobId");
  if (const std::string task = text_of(fields, "ArrayTaskId"); !task.empty() && !job.array.empty()) {
    const bool several = task.find_first_not_of("0123456789") != std::string::npos;
    job.id = fmt::format(fmt::runtime(several ? "{}_[{}]" : "{}_{}"), job.array, task);
  }
  for (const auto& [leader, offset] :
       {std::pair("HetJobId", "HetJobOffset"), std::pair("PackJobId", "PackJobOffset")}) {
    if (const std::string whole = text_of(fields, leader); !whole.empty() && !text_of(fields, offset).empty()) {
      job.id = whole + "+" + text_of(fields, offset);
    }
  }
  job.name = text_of(fields, "JobName");
  const std::string user = text_of(fields, "UserId");  // "ada(1000)"
  job.user = user.substr(0, user.find('('));
  job.partition = text_of(fields, "Partition");
  job.account = text_of(fields, "Account");
  job.state = text_of(fields, "JobState");
  if (const std::string reason = text_of(fields, "Reason"); reason != "None") {
    job.reason = reason;
  }
  job.submitted = text_of(fields, "SubmitTime");
  job.started = text_of(fields, "StartTime");
  // For a running job, EndTime is when its limit ends it.
  job.ended = job.runs() || job.waits() ? "" : text_of(fields, "EndTime");
  job.elapsed_s = parse_duration(text_of(fields, "RunTime"));
  job.limit_s = parse_duration(text_of(fields, "TimeLimit"));
  job.nodes = number_of(fields, "NumNodes");
  job.cpus = number_of(fields, "NumCPUs");
  job.tasks_per_node = tasks_on_each(number_of(fields, "NumTasks"), job.nodes);
  const std::string resources = !text_of(fields, "TRES").empty()        ? text_of(fields, "TRES")
                                : !text_of(fields, "AllocTRES").empty() ? text_of(fields, "AllocTRES")
                                                                        : text_of(fields, "ReqTRES");
  job.gpus = count_of(resources, "gres/gpu");
  if (job.gpus == 0) {  // clusters that do not track GPUs: "gres:gpu:1", "gres/gpu:a100:2", per node
    std::string each = text_of(fields, "TresPerNode");
    std::replace(each.begin(), each.end(), ':', '/');
    if (const std::size_t gpu = each.find("gres/gpu"); gpu != std::string::npos) {
      const std::string_view last = split(std::string_view(each).substr(gpu), '/').back();
      job.gpus = capped(std::int64_t{parse_number<int>(last) ? parse_count(last) : 1} * std::max(1, job.nodes));
    }
  }
  job.memory_bytes = memory_in(resources);
  job.node_list = text_of(fields, "NodeList");
  parse_exit_code(text_of(fields, "ExitCode"), job);
  job.folder = text_of(fields, "WorkDir");
  job.output = text_of(fields, "StdOut");
  job.comment = text_of(fields, "Comment");
  return job;
}

}  // namespace unidle::slurm
