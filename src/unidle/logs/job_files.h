// Which files of a results folder belong to one job.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace unidle::logs {

struct JobFiles {
  std::vector<std::filesystem::path> by_name;    // the id stands in the name, as a number of its own; sorted
  std::optional<std::filesystem::path> by_time;  // the program's own log, where no text log carries the id

  std::vector<std::filesystem::path> all() const;
};

/// Looks through `folder` and the folders in it; files that hold no log (plots, checkpoints) are left out. By time a
/// text log belongs to the job when it lies inside the time of the job's other files and begins soon after them; of
/// several the nearest. Throws kInput (subject: the folder) when it is none or nothing carries the id, kUsage for an id
/// that is no number.
JobFiles find_job_files(std::string_view id, const std::filesystem::path& folder);

/// First and last time in a log, by its first and last 64 KiB; by all of one that is packed, up to any damage. Nothing
/// when it tells none with a date; never throws for what the file holds.
struct TimeRange {
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
};
std::optional<TimeRange> time_range(const std::filesystem::path& path);

/// True when `id` stands in `name` with no digit beside it: "gpu_run_52178.out" carries 52178, not 2178.
bool carries_id(std::string_view name, std::string_view id);

}  // namespace unidle::logs
