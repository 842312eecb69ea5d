// Many records in one folder: what is in them at a glance, and what becomes of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace unidle::record {

/// A record at a glance. What could not be read is absent.
struct RunGlance {
  std::string name;  // of its folder
  std::filesystem::path path;
  std::string user;         // who owns it
  std::uint64_t bytes = 0;  // on disk
  std::string started_utc;  // ISO 8601
  std::optional<double> seconds;
  std::string outcome;  // "running", "completed", "failed", ...; "unknown" where it was cut off
  nlohmann::json exit;
  nlohmann::json command;
  nlohmann::json tier;
  std::string error;  // why it cannot be read

  /// Of the wall clock; what its name says where it cannot be read.
  std::optional<std::int64_t> started_ns() const;
};

/// Every folder in `folder` that is no link, the newest name first; empty when there is no such folder. Reads several
/// at once. Throws kInput when the folder cannot be read.
std::vector<RunGlance> glance_at_runs(const std::filesystem::path& folder);

/// Which of them are meant.
struct RunFilter {
  bool bad = false;
  std::optional<std::int64_t> since_ns;   // of the wall clock; began then or later
  std::optional<std::int64_t> before_ns;  // began before that
  std::string user;                       // nobody: everybody's

  /// Whether it leaves any out.
  bool chooses() const { return bad || since_ns || before_ns || !user.empty(); }
  bool admits(const RunGlance& run) const;
};

/// It failed, was cut off or stopped, or cannot be read.
bool is_bad(const RunGlance& run);

/// Whether a record lies in that folder, be it readable or damaged; a link to one is none.
bool is_record(const std::filesystem::path& folder);

/// Removes a record's files, and its folder, with the page of a report, when nothing else is in it. Throws kUsage for
/// what holds no record and for one that is being written.
void remove_run(const std::filesystem::path& folder);

/// Points the link `latest` in `folder` at the newest record by name where what it named is gone; without any record it
/// goes too. Failure is ignored: the link is a convenience.
void mend_latest(const std::filesystem::path& folder);

/// Writes one file that every command reads in place of the record, also of a run that still goes on. Throws kInput for
/// what is no record, kUsage when `file` exists, kIo when it cannot be written; then nothing is left of it.
void export_run(const std::filesystem::path& record, const std::filesystem::path& file);

}  // namespace unidle::record
