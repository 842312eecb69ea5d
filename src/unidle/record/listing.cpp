#include "unidle/record/listing.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/sqlite.h"
#include "unidle/record/detail/ended.h"
#include "unidle/record/detail/schema.h"
#include "unidle/record/record.h"
#include "unidle/telemetry/host.h"

namespace unidle::record {

namespace fs = std::filesystem;

namespace {

constexpr std::array kFiles = {"record.db", "record.db-wal"};
/// A recorder commits once a second; over a network file system, file times arrive later.
constexpr auto kSilent = std::chrono::seconds(60);

/// Where `unidle report` writes. In a folder with other files, it may belong to somebody else.
constexpr const char* kPage = "report.html";

/// Files that a recorder makes in a record's folder.
bool is_of_a_record(std::string_view name) {
  return name.starts_with("record.db") || name.starts_with(".record.db.") ||
         (name.starts_with("trace-") && name.ends_with(".json"));
}

std::uint64_t bytes_of(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    std::error_code unknown;
    const std::uintmax_t size = entry->is_regular_file(unknown) ? entry->file_size(unknown) : 0;
    bytes += unknown ? 0 : size;
  }
  return bytes;
}

/// Names of users. Caches each name, because the system reads a file or asks a network for it. Thread-safe.
class Owners {
 public:
  std::string of(const fs::path& folder) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) {
      return "";
    }
    const std::lock_guard lock(mutex_);
    const auto [at, added] = names_.try_emplace(status.st_uid);
    if (added) {
      at->second = name_of(status.st_uid);
    }
    return at->second;
  }

 private:
  static std::string name_of(uid_t user) {
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    const bool known = ::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
    return known ? entry.pw_name : std::to_string(user);
  }

  std::mutex mutex_;
  std::map<uid_t, std::string> names_;
};

std::string text_of(const std::map<std::string, nlohmann::json>& values, std::string_view key) {
  const auto found = values.find(std::string(key));
  return found != values.end() && found->second.is_string() ? found->second.get<std::string>() : "";
}

nlohmann::json value_of(const std::map<std::string, nlohmann::json>& values, std::string_view key) {
  const auto found = values.find(std::string(key));
  return found == values.end() ? nlohmann::json() : found->second;
}

/// A search writes its record when it has ended.
void read_search(RunSummary& run, const std::map<std::string, nlohmann::json>& values) {
  run.outcome = "completed";
  SearchSummary& search = run.search.emplace();
  if (std::string by = text_of(values, meta::kSearchedBy); !by.empty()) {
    search.by = std::move(by);
  }
  const nlohmann::json found = value_of(values, "verification");
  if (flag_in(found, "shown").value_or(false)) {
    search.gain = number_in(found, "ratio");
  }
  search.nothing_to_gain = text_of(values, "conclusion").starts_with("nothing to gain");
  if (const nlohmann::json program = value_of(values, "program"); program.is_object() && program.contains("command")) {
    run.command = program["command"];
  }
  const nlohmann::json trials = value_of(values, "trials");
  for (const nlohmann::json& trial : trials.is_array() ? trials : nlohmann::json::array()) {
    run.seconds = run.seconds.value_or(0) + number_in(trial, "seconds").value_or(0);
  }
}

void read_into(RunSummary& run) {
  const auto of_ended = meta_of_ended(run.path);
  const std::map<std::string, nlohmann::json> values = of_ended ? *of_ended : Reader(run.path).all_meta();
  run.started_utc = text_of(values, meta::kStartedUtc);
  run.outcome = text_of(values, meta::kOutcome);
  run.exit = value_of(values, meta::kExit);
  run.command = value_of(values, meta::kCommand);
  run.tier = value_of(values, meta::kTier);
  if (text_of(values, meta::kKind) == meta::kSearch) {
    read_search(run, values);
    return;
  }
  const nlohmann::json begin = value_of(values, meta::kStartNs);
  const nlohmann::json end = value_of(values, meta::kEndNs);
  if (begin.is_number_integer() && end.is_number_integer()) {
    run.seconds = seconds(end.get<std::int64_t>()) - seconds(begin.get<std::int64_t>());
  } else if (run.outcome.empty() && is_being_written(run.path)) {
    run.outcome = "running";
  }
}

void look_at(RunSummary& run, Owners& owners) {
  try {
    run.user = owners.of(run.path);
    run.bytes = bytes_of(run.path);
    read_into(run);
  } catch (const std::exception& error) {
    run.error = error.what();
  }
  if (run.outcome.empty()) {
    run.outcome = "unknown";
  }
}

}  // namespace

bool is_being_written(const fs::path& folder) {
  return std::any_of(kFiles.begin(), kFiles.end(), [&](const char* name) {
    std::error_code failure;
    const auto written = fs::last_write_time(folder / name, failure);
    return !failure && fs::file_time_type::clock::now() - written < kSilent;
  });
}

std::optional<std::int64_t> RunSummary::started_ns() const {
  const auto read = parse_utc(started_utc, "%Y-%m-%dT%H:%M:%SZ");
  return read ? read : parse_utc(name.substr(0, 15), "%Y%m%d-%H%M%S");
}

bool RunFilter::admits(const RunSummary& run) const {
  const auto began_ns = run.started_ns();
  return (!bad || is_bad(run)) && (!since_ns || (began_ns && *began_ns >= *since_ns)) &&
         (!before_ns || (began_ns && *began_ns < *before_ns)) && (user.empty() || run.user == user);
}

std::vector<RunSummary> list_runs(const fs::path& folder) {
  std::vector<RunSummary> runs;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (std::error_code unknown; !entry->is_symlink(unknown) && entry->is_directory(unknown)) {
      runs.emplace_back().path = entry->path();
      runs.back().name = entry->path().filename().string();
    }
  }
  if (failure && fs::exists(status_of(folder))) {
    throw system_error(ErrorCode::kInput, folder.string(), "cannot be read", failure.value());
  }
  std::sort(runs.begin(), runs.end(), [](const RunSummary& a, const RunSummary& b) { return a.name > b.name; });
  Owners owners;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < runs.size(); i = next++) {
      look_at(runs[i], owners);
    }
  };
  constexpr int kMostThreads = 8;
  constexpr std::size_t kWorthAThread = 64;
  const std::size_t wanted = runs.size() / kWorthAThread;
  const std::size_t threads =
      wanted > 1 ? std::min(wanted, static_cast<std::size_t>(std::min(kMostThreads, telemetry::usable_cpus()))) : 1;
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < threads; ++i) {
    helpers.emplace_back(work);
  }
  work();
  return runs;
}

bool is_bad(const RunSummary& run) {
  return !run.error.empty() || (run.outcome != "completed" && run.outcome != "running");
}

bool is_record(const fs::path& folder) {
  if (fs::is_symlink(fs::symlink_status(folder))) {
    return false;
  }
  try {
    sqlite::Database db(folder / "record.db", sqlite::uri_of(folder / "record.db", ""), SQLITE_OPEN_READONLY,
                        ErrorCode::kInput, kRecordKind);
    return db.query_integer("PRAGMA application_id") == kApplicationId;
  } catch (const Error&) {
    return false;
  }
}

void remove_run(const fs::path& folder) {
  if (!is_record(folder)) {
    throw Error(ErrorCode::kUsage, folder.string(), "holds no record, so nothing of it is removed");
  }
  if (is_being_written(folder) && !Reader(folder).meta(meta::kEndNs)) {
    throw Error(ErrorCode::kUsage, folder.string(), "is being written", "wait until its run has ended");
  }
  // The folder may be the user's project: `unidle run -o .`
  std::error_code failure;
  bool holds_more = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_of_a_record(name)) {
      fs::remove(entry.path(), failure);
      if (failure) {
        throw system_error(ErrorCode::kIo, entry.path().string(), "cannot be removed", failure.value());
      }
    }
    holds_more = holds_more || (!is_of_a_record(name) && name != kPage && name != kPatch);
  }
  if (!holds_more) {
    fs::remove(folder / kPage, failure);
    fs::remove(folder / kPatch, failure);
  }
  ::rmdir(folder.c_str());  // only when nothing else is in it
}

void repair_latest(const fs::path& folder) {
  const fs::path link = folder / "latest";
  if (!fs::is_symlink(fs::symlink_status(link)) || fs::exists(status_of(link))) {
    return;
  }
  std::error_code ignored;
  fs::path newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const fs::path name = entry.path().filename();
    if (entry.path() != link && name > newest && is_record(entry.path())) {
      newest = name;
    }
  }
  fs::remove(link, ignored);
  if (!newest.empty()) {
    fs::create_symlink(newest, link, ignored);
  }
}

void export_run(const fs::path& record, const fs::path& file) {
  if (fs::exists(fs::symlink_status(file))) {
    throw Error(ErrorCode::kUsage, file.string(), "exists already", "name another file");
  }
  const Reader reader(record);
  try {
    reader.copy_to(file);
  } catch (...) {
    std::error_code ignored;
    fs::remove(file, ignored);
    throw;
  }
}

}  // namespace unidle::record
