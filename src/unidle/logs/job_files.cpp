#include "unidle/logs/job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "unidle/base/characters.h"
#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/logs/detail/numbers.h"
#include "unidle/logs/lines.h"
#include "unidle/logs/sniff.h"
#include "unidle/logs/source.h"
#include "unidle/logs/timestamp.h"

namespace unidle::logs {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kEnd = std::size_t{64} << 10U;
constexpr std::size_t kMostFiles = 50'000;
/// A program's log starts once its framework is imported; a monitor may start some minutes earlier.
constexpr std::int64_t kSoonNs = 15 * 60 * kNsPerSecond;
constexpr std::int64_t kSlackNs = 2 * 60 * kNsPerSecond;  // for clocks and buffers

std::vector<fs::path> files_under(const fs::path& folder) {
  std::error_code failure;
  fs::recursive_directory_iterator walk(folder, fs::directory_options::skip_permission_denied, failure);
  if (failure) {
    throw Error(ErrorCode::kInput, folder.string(), "cannot be looked through: " + failure.message(),
                "a folder with the job's logs was expected");
  }
  std::vector<fs::path> files;
  while (walk != fs::recursive_directory_iterator() && files.size() < kMostFiles) {
    std::error_code ignored;
    if (walk->is_regular_file(ignored)) {
      files.push_back(walk->path());
    } else if (walk->is_directory(ignored) && walk->path().filename().string().starts_with(".")) {
      walk.disable_recursion_pending();
    }
    walk.increment(failure);
    if (failure) {
      break;
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The kind of log in a file; nothing if it is not a log or cannot be read.
std::optional<Kind> log_kind(const fs::path& path) {
  try {
    const Kind kind = sniff(path).kind;
    return kind == Kind::kRecord ? std::nullopt : std::optional(kind);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void take_times(Source& source, std::optional<TimeRange>& range) {
  Lines lines(source);
  StampReader stamps;
  std::string_view line;
  while (lines.next(line)) {
    auto stamp = stamps.at_begin(line);
    if (!stamp && line.size() < 400) {
      stamp = stamps.anywhere(line);
    }
    if (stamp && stamp->has_year) {
      range = range.value_or(TimeRange{stamp->ns, stamp->ns});
      range->first_ns = std::min(range->first_ns, stamp->ns);
      range->last_ns = std::max(range->last_ns, stamp->ns);
    }
  }
}

/// From the first and last 64 KiB of an uncompressed file.
void take_times_of_ends(const fs::path& path, std::optional<TimeRange>& range) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  std::string bytes(kEnd, '\0');
  for (const std::streamoff from : {std::streamoff{0}, std::max<std::streamoff>(0, size - std::streamoff{kEnd})}) {
    file.clear();
    file.seekg(from);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    Source source("", {bytes.data(), static_cast<std::size_t>(file.gcount())});
    take_times(source, range);
  }
}

std::optional<TimeRange> range_of(const std::vector<fs::path>& files) {
  std::optional<TimeRange> all;
  for (const fs::path& file : files) {
    if (const auto one = time_range(file)) {
      all = all.value_or(*one);
      all->first_ns = std::min(all->first_ns, one->first_ns);
      all->last_ns = std::max(all->last_ns, one->last_ns);
    }
  }
  return all;
}

std::optional<fs::path> nearest_text(const std::vector<fs::path>& files, const std::vector<fs::path>& taken,
                                     const TimeRange& job) {
  std::optional<fs::path> best;
  std::int64_t nearest = kSoonNs;
  for (const fs::path& file : files) {
    if (std::find(taken.begin(), taken.end(), file) != taken.end() || log_kind(file) != Kind::kText) {
      continue;
    }
    const auto range = time_range(file);
    if (!range || range->first_ns < job.first_ns - kSlackNs || range->last_ns > job.last_ns + kSlackNs) {
      continue;
    }
    const std::int64_t distance = std::abs(range->first_ns - job.first_ns);
    if (distance < nearest) {
      nearest = distance;
      best = file;
    }
  }
  return best;
}

}  // namespace

std::vector<fs::path> JobFiles::all() const {
  std::vector<fs::path> files = by_name;
  if (by_time) {
    files.push_back(*by_time);
  }
  return files;
}

bool carries_id(std::string_view name, std::string_view id) {
  for (std::size_t at = name.find(id); at != std::string_view::npos; at = name.find(id, at + 1)) {
    const bool front = at == 0 || !is_digit(name[at - 1]);
    const bool back = at + id.size() >= name.size() || !is_digit(name[at + id.size()]);
    if (front && back) {
      return true;
    }
  }
  return false;
}

std::optional<TimeRange> time_range(const fs::path& path) {
  std::optional<TimeRange> range;
  try {
    if (Source source(path); source.compressed()) {
      take_times(source, range);
    } else {
      take_times_of_ends(path, range);
    }
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // Damaged or unreadable from here on: the earlier times count.
  }
  return range;
}

JobFiles find_job_files(std::string_view id, const fs::path& folder) {
  if (id.empty() || !std::all_of(id.begin(), id.end(), is_digit)) {
    throw Error(ErrorCode::kUsage, "--job-id", fmt::format("'{}' is not a job id", id), "a number was expected");
  }
  const std::vector<fs::path> files = files_under(folder);
  JobFiles job;
  bool has_text = false;
  for (const fs::path& file : files) {
    if (!carries_id(file.filename().string(), id)) {
      continue;
    }
    if (const auto kind = log_kind(file)) {
      job.by_name.push_back(file);
      has_text = has_text || kind == Kind::kText;
    }
  }
  if (job.by_name.empty()) {
    throw Error(ErrorCode::kInput, folder.string(), fmt::format("holds no log of job {}", id),
                fmt::format("names that carry the id were expected, such as slurm-{}.out", id));
  }
  if (!has_text) {
    if (const auto range = range_of(job.by_name)) {
      job.by_time = nearest_text(files, job.by_name, *range);
    }
  }
  return job;
}

}  // namespace unidle::logs
