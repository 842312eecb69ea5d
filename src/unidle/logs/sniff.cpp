#include "unidle/logs/sniff.h"

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/logs/source.h"

namespace unidle::logs {

namespace {

constexpr std::size_t kHead = std::size_t{64} << 10U;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// A hole of NULs at the start of a line: several processes wrote into one file, or the file was truncated while being
/// written.
bool is_hole(std::string_view head, std::size_t at, std::size_t end) {
  return end < head.size() && (at == 0 || head[at - 1] == '\n');
}

/// Text contains NUL only in holes; other control characters are rare.
bool is_binary(std::string_view head) {
  std::size_t odd = 0;
  for (std::size_t at = 0; at < head.size(); ++at) {
    if (head[at] == '\0') {
      const std::size_t end = std::min(head.find_first_not_of('\0', at), head.size());
      if (!is_hole(head, at, end)) {
        return true;
      }
      at = end;
    }
    const char c = head[at];
    const auto byte = static_cast<unsigned char>(c);
    odd += (byte < 0x20 && !is_space(c) && c != '\x1b' && c != '\b' && c != '\f') || byte == 0x7f ? 1 : 0;
  }
  return odd * 50 > head.size();
}

/// Chrome JSON: an object with the profiler's keys, or a bare array of events.
bool is_trace(std::string_view head) {
  if (head.starts_with("{")) {
    // The part before the events may be long, such as metadata of the program.
    const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
    return has("\"traceEvents\"") || (has("\"schemaVersion\"") && (has("\"deviceProperties\"") ||
                                                                   has("\"displayTimeUnit\"") || has("\"trace_id\"")));
  }
  if (!head.starts_with("[")) {
    return false;
  }
  head.remove_prefix(1);
  while (!head.empty() && is_space(head.front())) {
    head.remove_prefix(1);
  }
  return head.starts_with("{") && head.substr(0, 4096).find("\"ph\"") != std::string_view::npos;
}

std::string head_of(Source& source, std::size_t most) {
  std::string head(most, '\0');
  std::size_t size = 0;
  while (size < head.size()) {
    const std::size_t got = source.read({head.data() + size, head.size() - size});
    if (got == 0) {
      break;
    }
    size += got;
  }
  head.resize(size);
  return head;
}

}  // namespace

std::string known_logs() {
  return "logs of " + gpu_programs() + "; Slurm output, training logs, torch profiler traces";
}

Content sniff_bytes(std::string_view head, const std::string& name) {
  if (head.starts_with("SQLite format 3")) {
    return {Kind::kRecord};
  }
  if (is_binary(head)) {
    throw Error(ErrorCode::kInput, name, "holds binary data, no log", "expected: " + known_logs() + ", or a record");
  }
  if (head.starts_with("\xef\xbb\xbf")) {
    head.remove_prefix(3);
  }
  while (!head.empty() && is_space(head.front())) {
    head.remove_prefix(1);
  }
  if (head.empty()) {
    return {Kind::kEmpty};
  }
  if (is_trace(head)) {
    return {Kind::kTrace};
  }
  const GpuFormat* gpu = gpu_format_of(head);
  return {gpu != nullptr ? Kind::kGpu : Kind::kText, gpu};
}

Content sniff(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) && std::filesystem::exists(path / "record.db", ignored)) {
    return {Kind::kRecord};
  }
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_directory(status)) {
    throw Error(ErrorCode::kInput, path.string(), "is a pipe or a device, and logs are read more than once",
                "a file was expected: write the stream to one first");
  }
  Source source(path);
  return sniff_bytes(head_of(source, kHead), source.name());
}

std::optional<OtherTable> other_table(const std::filesystem::path& path) {
  constexpr std::size_t kFirstLines = 4096;
  Source source(path);
  const std::string head = head_of(source, kFirstLines);
  const auto has = [&](std::string_view word) { return head.find(word) != std::string::npos; };
  constexpr const char* kAskSlurm =
      "unidle slurm analyze JOB asks Slurm itself; the job's output can be diagnosed as well";
  if (has("CPUEff") || has("MemEff")) {
    return OtherTable{"is a table of reportseff, which has no times of the run", kAskSlurm};
  }
  const bool json = has("\"jobs\"") && (has("\"allocation_nodes\"") || has("\"association\"") || has("Slurm"));
  if (json || has("JobID|") || (has("JobID,") && has(",State"))) {
    return OtherTable{"is a list of jobs by sacct", kAskSlurm};
  }
  if (has("JobID") && (has("State") || has("MaxRSS") || has("Elapsed"))) {
    return OtherTable{"is a table of sacct, which cuts its columns off", kAskSlurm};
  }
  if (has("JOBID") && has("NODELIST")) {
    return OtherTable{"is a table of squeue, which says nothing of how jobs run", kAskSlurm};
  }
  if (has("JobId=") && has("JobState=")) {
    return OtherTable{"is a description of a job by scontrol", kAskSlurm};
  }
  if (has("Job ID:") && (has("State: RUNNING") || has("State: PENDING"))) {
    return OtherTable{"is seff's report on a job that has not ended", kAskSlurm};
  }
  constexpr const char* kQueryGpu = "log nvidia-smi --query-gpu=timestamp,index,utilization.gpu --format=csv -l 10";
  if (has("used_gpu_memory") || (has("pid,") && has("used_memory"))) {
    return OtherTable{"lists the processes of GPUs (nvidia-smi --query-compute-apps)", kQueryGpu};
  }
  if (has("[0] ") && has("'C,") && has(" MB |")) {
    return OtherTable{"is a table of gpustat for people", kQueryGpu};
  }
  if (has("ROCm System Management Interface") || has("AMD-SMI")) {
    return OtherTable{"is a table of rocm-smi or amd-smi for people",
                      "log rocm-smi --showuse --showmemuse --csv, or amd-smi metric --usage --csv, in a loop"};
  }
  return std::nullopt;
}

}  // namespace unidle::logs
