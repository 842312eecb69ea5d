// Finds the files of a results folder that belong to one job.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace unidle::logs {

struct JobFiles {
  std::vector<std::filesystem::path> by_name;    // the id is in the name, as a number of its own; sorted
  std::optional<std::filesystem::path> by_time;  // the program's own log, if no text log has the id in its name

  std::vector<std::filesystem::path> all() const;
};

/// Searches `folder` and its subfolders; files other than logs (plots, checkpoints) are ignored. By time, a text log
/// belongs to the job when it lies within the time range of the job's other files and starts soon after them; the
/// nearest of several wins. Throws kInput (subject: the folder) when it is not a folder or no file has the id, kUsage
/// for an id that is not a number.
JobFiles find_job_files(std::string_view id, const std::filesystem::path& folder);

/// First and last time in a log, from its first and last 64 KiB; a compressed log is read completely, up to any damage.
/// Nothing without a time with a date; never throws for the file's content.
struct TimeRange {
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
};
std::optional<TimeRange> time_range(const std::filesystem::path& path);

/// True when `id` is in `name` without a digit beside it: "gpu_run_52178.out" has 52178, not 2178.
bool carries_id(std::string_view name, std::string_view id);

}  // namespace unidle::logs
