// Lists, removes and exports records.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace unidle::record {

/// What became of a search for faster settings.
struct SearchSummary {
  std::string by = "search";     // the command that searched: "fix", "optimize"
  std::optional<double> gain;    // proven: so many times as fast
  bool nothing_to_gain = false;  // otherwise it could not tell
};

/// Summary of a record. Values that could not be read are absent.
struct RunSummary {
  std::string name;  // name of its folder
  std::filesystem::path path;
  std::string user;         // owner of the folder
  std::uint64_t bytes = 0;  // on disk
  std::string started_utc;  // ISO 8601
  std::optional<double> seconds;
  std::string outcome;  // "running", "completed" (also a search), "failed", ...; "unknown" if it was cut off
  nlohmann::json exit;
  nlohmann::json command;
  nlohmann::json tier;
  std::optional<SearchSummary> search;  // set if `unidle fix` or `unidle optimize` made the record
  std::string error;                    // why it cannot be read

  /// Start in wall-clock time; taken from the folder's name if the record cannot be read.
  std::optional<std::int64_t> started_ns() const;
};

/// Every folder in `folder` that is not a link, newest name first; empty when `folder` does not exist. Reads several at
/// once. Throws kInput when `folder` cannot be read.
std::vector<RunSummary> list_runs(const std::filesystem::path& folder);

/// Selects records.
struct RunFilter {
  bool bad = false;
  std::optional<std::int64_t> since_ns;   // wall-clock time; began then or later
  std::optional<std::int64_t> before_ns;  // began earlier
  std::string user;                       // empty: any user

  /// Whether the filter excludes any record.
  bool chooses() const { return bad || since_ns || before_ns || !user.empty(); }
  bool admits(const RunSummary& run) const;
};

/// Whether the run failed, was cut off or stopped, or cannot be read.
bool is_bad(const RunSummary& run);

/// Whether the folder holds a record, readable or damaged. A link to a record does not count.
bool is_record(const std::filesystem::path& folder);

/// Whether a file of the record has changed within the last minute, as a recorder changes it once a second.
bool is_being_written(const std::filesystem::path& folder);

/// The file in a record's folder with the patch that a search found.
inline constexpr const char* kPatch = "changes.patch";

/// Removes a record's files, and its folder, report page and patch when nothing else is in it. Throws kUsage when
/// `folder` holds no record or the record is being written.
void remove_run(const std::filesystem::path& folder);

/// If the target of the link `latest` in `folder` is gone, points it at the newest record by name, or removes the link
/// when there is no record. Failure is ignored: the link is a convenience.
void repair_latest(const std::filesystem::path& folder);

/// Writes one file that every command reads in place of the record. The run may still be in progress. Throws kInput
/// when `record` is not a record, kUsage when `file` exists, kIo when it cannot be written; then no partial file
/// remains.
void export_run(const std::filesystem::path& record, const std::filesystem::path& file);

}  // namespace unidle::record
