#include "unidle/observe/recovery.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/json.h"
#include "unidle/base/log.h"
#include "unidle/observe/collector.h"
#include "unidle/observe/events.h"
#include "unidle/record/note_types.h"
#include "unidle/record/record.h"

namespace unidle::observe {

namespace fs = std::filesystem;

namespace {

/// State of the record before recovery.
struct Before {
  std::optional<record::ResumePoint> point;
  std::vector<std::string> problems;
  std::uint64_t dropped = 0;
  bool cuda = false;
  bool python = false;
  bool over = false;  // the recorder had reached the end of the run
  std::int64_t pid = 0;
};

Before read_before(const fs::path& folder) {
  const record::Reader reader(folder);
  Before before;
  before.point = reader.resume_point();
  if (const auto problems = reader.meta(record::meta::kProblems); problems && problems->is_array()) {
    for (const nlohmann::json& problem : *problems) {
      before.problems.push_back(plain_text(problem));
    }
  }
  if (const auto dropped = reader.meta(record::meta::kDropped); dropped && dropped->is_number_unsigned()) {
    before.dropped = dropped->get<std::uint64_t>();
  }
  if (const auto gpus = reader.meta(record::meta::kGpus); gpus && gpus->is_array() && !gpus->empty()) {
    before.cuda = text_in(gpus->front(), "kind") == "cuda";
  }
  for (const record::Note& note : reader.notes()) {
    before.python = before.python || record::is_of(note, record::NoteType::kShim);
  }
  before.over = reader.meta(record::meta::kExit).has_value();
  if (const auto pid = reader.meta(record::meta::kPid); pid && pid->is_number_integer()) {
    before.pid = pid->get<std::int64_t>();
  }
  return before;
}

/// Whether a file may hold more than the record does.
bool something_new(const fs::path& probe, const record::ResumePoint& point) {
  std::error_code failure;
  for (fs::directory_iterator entry(probe, failure), end; !failure && entry != end; entry.increment(failure)) {
    const fs::path& path = entry->path();
    if (path.extension() == ".ring" || path.extension() == ".stretch") {
      return true;
    }
    std::int64_t taken = 0;
    for (const record::Position& position : point.positions) {
      taken = position.file == path.filename() ? position.taken : taken;
    }
    if (path.extension() == ".jsonl" && static_cast<std::int64_t>(entry->file_size(failure)) != taken) {
      return true;
    }
  }
  return false;
}

/// A recorder writes the rest of a run that has just ended.
constexpr std::int64_t kWritesTheRest_ns = 10 * kNsPerSecond;

bool lives(std::int64_t pid) { return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }

std::uint64_t take_left(const fs::path& folder, const Before& before) {
  record::Writer writer(folder, record::Begin::kResume);
  writer.commit_on_flush_only();
  EventWriter events(writer);
  Collector collector(folder / "probe", writer, events);
  collector.resume(*before.point);
  collector.take_all_events();
  collector.take_notes(system_clock().now_ns());
  collector.write_positions();
  events.write_work();
  if (!before.over) {
    std::vector<std::string> problems = before.problems;
    problems.push_back(
        fmt::format("unidle was killed while it recorded: {} steps come from what it had left", events.steps()));
    const bool python = before.python || collector.python_seen();
    writer.set_meta(record::meta::kProblems, problems);
    writer.set_meta(record::meta::kDropped, before.dropped + collector.dropped());
    writer.set_meta(record::meta::kTier,
                    fmt::format("host{}+probe{}", before.cuda ? "+nvml" : "", python ? "+python" : ""));
  }
  writer.flush();
  collector.settle();
  writer.flush();
  if (!collector.has_rings() && !lives(before.pid)) {
    collector.remove_files();
    writer.flush();
  }
  return events.steps();
}

/// The lock of a folder in which no recorder lives. Waits for one that writes the rest of a run that has ended; it is a
/// process that nobody else waits for.
UniqueFd lock_unrecorded(const fs::path& folder) {
  const std::int64_t until = system_clock().now_ns() + kWritesTheRest_ns;
  for (;;) {
    UniqueFd lock = lock_folder(folder / "probe");
    if (lock || lives(read_before(folder).pid) || system_clock().now_ns() > until) {
      return lock;
    }
    ::usleep(20'000);
  }
}

}  // namespace

UniqueFd lock_folder(const fs::path& probe_folder) {
  UniqueFd fd(::open(probe_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(fd) : UniqueFd();
}

std::uint64_t recover(const fs::path& record) {
  try {
    std::error_code ignored;
    const fs::path folder = fs::is_directory(record, ignored) ? record : record.parent_path();
    const fs::path probe = folder / "probe";
    const UniqueFd lock = fs::is_directory(probe, ignored) ? lock_unrecorded(folder) : UniqueFd();
    if (!lock) {
      return 0;
    }
    const Before before = read_before(folder);
    return before.point && something_new(probe, *before.point) ? take_left(folder, before) : 0;
  } catch (const std::exception& error) {
    spdlog::debug("nothing could be recovered of {}: {}", record.string(), error.what());
    return 0;
  }
}

}  // namespace unidle::observe
