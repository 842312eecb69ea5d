#include "unidle/observe/collector.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "unidle/base/clock.h"

namespace unidle::observe {

namespace fs = std::filesystem;

namespace {

constexpr int kQuietRounds = 2;
constexpr std::uint64_t kRarest = 600;  // rounds between two attempts to open a file that is not a valid ring
constexpr std::size_t kMostProblems = 20;

/// The pid in the name of a ring or notes file; 0 for any other file.
std::int64_t pid_of(const fs::path& file) { return std::max(0LL, std::atoll(file.filename().c_str())); }

/// The start time in "PID.START.notes.jsonl"; 0 if there is none.
std::uint64_t start_of(const fs::path& file) {
  const std::string name = file.filename().string();
  const auto dot = name.find('.');
  return dot == std::string::npos ? 0 : std::strtoull(name.c_str() + dot + 1, nullptr, 10);
}

/// Whether this note says that the Python shim is active.
bool is_running_shim(const nlohmann::json& body) {
  return body.is_object() && body.value("type", nlohmann::json()) == "shim" &&
         body.value("status", nlohmann::json()) == "on";
}

/// Distinguishes a notes file from an earlier one of the same name, whose inode it may have: by its creation time, if
/// the file system stores it.
std::int64_t identity_of(const fs::path& path) {
  struct statx facts {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_BTIME, &facts) != 0) {
    return 0;
  }
  const auto inode = static_cast<std::int64_t>(facts.stx_ino);
  const bool dated = (facts.stx_mask & STATX_BTIME) != 0;
  return dated ? inode ^ (facts.stx_btime.tv_sec * kNsPerSecond + facts.stx_btime.tv_nsec) : inode;
}

void remove_file(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

}  // namespace

Collector::Collector(Path folder, record::Writer& writer, EventWriter& events, probe::OpenFile opener)
    : folder_(std::move(folder)), writer_(writer), events_(events), opener_(std::move(opener)) {}

void Collector::resume(const record::ResumePoint& point) {
  events_.resume(point);
  processes_.taken(point.processes);
  for (const record::Position& position : point.positions) {
    earlier_[position.file] = position;
    processes_.known(position.process, static_cast<std::uint64_t>(position.process_start));
    if (Path(position.file).extension() == ".stretch") {
      events_.skip_steps_before(position.process, position.taken);
    }
  }
}

const record::Position* Collector::earlier(const Path& path) const {
  const auto found = earlier_.find(path.filename().string());
  return found == earlier_.end() ? nullptr : &found->second;
}

void Collector::find_files(bool everything) {
  ++round_;
  std::error_code failure;
  for (fs::directory_iterator entry(folder_, failure), end; !failure && entry != end; entry.increment(failure)) {
    const Path& path = entry->path();
    const Path extension = path.extension();
    if (extension == ".ring" && !rings_.contains(path)) {
      open_ring(path, everything);
    } else if (extension == ".jsonl" && !notes_.contains(path)) {
      open_notes(path);
    } else if (extension == ".stretch") {
      stretches_.insert(path);
    }
  }
}

void Collector::open_ring(const Path& path, bool everything) {
  const auto unready = unready_.find(path);
  if (unready != unready_.end() && unready->second.next_round > round_ && !everything) {
    return;
  }
  std::string problem;
  auto reader = probe::RingReader::open(path, problem, opener_);
  if (!reader) {
    Unready& later = unready_[path];  // it may be incomplete
    later.problem = problem;
    later.tries += 1;
    later.next_round = round_ + std::min(kRarest, later.tries * later.tries / 8);
    return;
  }
  unready_.erase(path);
  probe_seen_ = true;
  const auto started_ns = static_cast<std::int64_t>(reader->started_ns());
  const std::int64_t number = processes_.number(reader->pid(), reader->process_start());
  Ring ring{std::move(reader), {path.filename().string(), number, 0, started_ns, 0}};
  ring.position.process_start = static_cast<std::int64_t>(ring.reader->process_start());
  if (const record::Position* known = earlier(path); known != nullptr && known->started_ns == started_ns) {
    ring.position = *known;  // the previous recorder was killed after its commit, before it released the events
    ring.reader->skip_to(static_cast<std::uint64_t>(known->taken));
  }
  rings_.emplace(path, std::move(ring));
}

void Collector::open_notes(const Path& path) {
  const std::uint64_t start = start_of(path);
  record::Position position{path.filename().string(), processes_.number(pid_of(path), start),
                            static_cast<std::int64_t>(start), identity_of(path), 0};
  if (const record::Position* known = earlier(path); known != nullptr && known->started_ns == position.started_ns) {
    position = *known;
  }
  notes_.emplace(path, Notes{probe::NotesReader(path, position.taken, opener_), position});
}

void Collector::take_events() { drain_rings(false); }

void Collector::take_all_events() {
  // Read before the rings: steps that a process has unmarked by then are in its ring. In the other order, a stretch
  // that ends in between would be missed in both.
  std::map<Path, probe::Stretch> marked;
  std::error_code failure;
  for (fs::directory_iterator entry(folder_, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (entry->path().extension() == ".stretch") {
      if (auto stretch = probe::read_stretch(entry->path(), opener_)) {
        marked.emplace(entry->path(), std::move(*stretch));
      }
    }
  }
  drain_rings(true);
  for (const auto& [path, stretch] : marked) {
    take_stretch(path, stretch);
  }
}

void Collector::drain_rings(bool everything) {
  find_files(everything);
  for (auto& [path, ring] : rings_) {
    if (ring.done) {
      continue;
    }
    const bool closed = ring.reader->closed();  // read before draining, so that no event can arrive in between
    drain(ring);
    if (closed || ring.reader->damaged()) {
      end(path, ring);
    }
  }
}

void Collector::drain(Ring& ring) {
  slots_.clear();
  ring.reader->drain(slots_);
  for (const probe::Slot& slot : slots_) {
    events_.take(ring.position.process, slot);
  }
  const auto taken = static_cast<std::int64_t>(ring.reader->position());
  ring.changed = ring.changed || taken != ring.position.taken;
  ring.position.taken = taken;
}

bool Collector::nearly_full() const {
  return std::any_of(rings_.begin(), rings_.end(),
                     [](const auto& entry) { return !entry.second.done && entry.second.reader->nearly_full(); });
}

/// The process has ended or closed this ring.
void Collector::end(const Path& path, Ring& ring) {
  if (ring.reader->damaged()) {
    add_problem(fmt::format("{}: the ring is damaged, its events end early", path.string()));
  }
  ring.done = true;
  for (const Path& stretch : stretches_) {
    const auto read = pid_of(stretch) == ring.reader->pid() ? probe::read_stretch(stretch, opener_) : std::nullopt;
    if (read && read->process_start == ring.reader->process_start()) {
      take_stretch(stretch, *read);
      read_stretches_.insert(stretch);
    }
  }
}

void Collector::take_stretch(const Path& path, const probe::Stretch& stretch) {
  if (stretch.steps.empty()) {
    return;
  }
  const std::int64_t process = processes_.number(stretch.pid, stretch.process_start);
  // The process may have been killed while it wrote these steps into its ring.
  const std::int64_t first = events_.steps_of(process);
  for (const unidle_step& step : stretch.steps) {
    if (static_cast<std::int64_t>(step.step) >= first) {
      events_.take_step(process, step);
    }
  }
  const std::int64_t next = events_.steps_of(process);
  events_.skip_steps_before(process, next);  // it may be alive and still write them
  writer_.set(
      record::Position{path.filename().string(), process, static_cast<std::int64_t>(stretch.process_start), 0, next});
}

void Collector::take_notes(std::int64_t now_ns) {
  std::vector<Path> renewed;
  for (auto at = notes_.begin(); at != notes_.end();) {
    take_notes_of(at->second, now_ns);
    if (at->second.removed) {
      notes_refused_ += at->second.reader.refused();
      renewed.push_back(at->first);
      at = notes_.erase(at);
    } else {
      ++at;
    }
  }
  // Read now, because this round may be the last.
  for (const Path& path : renewed) {
    if (std::error_code ignored; fs::exists(path, ignored)) {
      open_notes(path);
      take_notes_of(notes_.at(path), now_ns);
    }
  }
}

void Collector::take_notes_of(Notes& notes, std::int64_t now_ns) {
  const std::int64_t before = notes.reader.position();
  notes.reader.drain([&](nlohmann::json body) {
    probe_seen_ = true;
    python_seen_ = python_seen_ || is_running_shim(body);
    events_.take_note(notes.position.process, now_ns, std::move(body));
  });
  notes.position.taken = notes.reader.position();
  const bool came = notes.position.taken != before;
  notes.quiet = came ? 0 : notes.quiet + 1;
  notes.changed = notes.changed || came;
}

void Collector::write_positions() {
  for (auto& [path, ring] : rings_) {
    if (std::exchange(ring.changed, false)) {
      writer_.set(ring.position);
    }
  }
  for (auto& [path, notes] : notes_) {
    if (std::exchange(notes.changed, false) && !notes.removed) {
      writer_.set(notes.position);
    }
  }
}

void Collector::settle() {
  for (auto at = rings_.begin(); at != rings_.end();) {
    Ring& ring = at->second;
    ring.reader->release();
    if (!ring.done) {
      ++at;
      continue;
    }
    dropped_ += ring.reader->dropped();
    refused_ += ring.reader->refused();
    remove_file(at->first);
    writer_.drop_position(ring.position.file);
    const std::int64_t process = ring.position.process;
    at = rings_.erase(at);
    const auto same = [&](const auto& other) { return other.second.position.process == process; };
    if (std::none_of(rings_.begin(), rings_.end(), same)) {
      events_.forget(process);
    }
  }
  for (const Path& stretch : std::exchange(read_stretches_, {})) {
    remove_file(stretch);
    writer_.drop_position(stretch.filename().string());
    stretches_.erase(stretch);
  }
  for (auto& [path, notes] : notes_) {
    if (!notes.removed && notes.quiet >= kQuietRounds && notes.reader.remove_read()) {
      notes.removed = true;
      writer_.drop_position(notes.position.file);
    }
  }
}

void Collector::remove_files() {
  std::error_code failure;
  for (fs::directory_iterator entry(folder_, failure), end; !failure && entry != end; entry.increment(failure)) {
    const Path extension = entry->path().extension();
    if (extension == ".ring" || extension == ".jsonl" || extension == ".stretch") {
      remove_file(entry->path());
    }
  }
  fs::remove(folder_, failure);  // fails unless empty
  writer_.drop_positions();
  rings_.clear();
  notes_.clear();
}

std::uint64_t Collector::dropped() const {
  std::uint64_t sum = dropped_;
  for (const auto& [path, ring] : rings_) {
    sum += ring.reader->dropped();
  }
  return sum;
}

std::uint64_t Collector::events_refused() const {
  std::uint64_t sum = refused_;
  for (const auto& [path, ring] : rings_) {
    sum += ring.reader->refused();
  }
  return sum;
}

std::uint64_t Collector::notes_refused() const {
  std::uint64_t sum = notes_refused_;
  for (const auto& [path, notes] : notes_) {
    sum += notes.reader.refused();
  }
  return sum;
}

void Collector::add_problem(std::string problem) {
  if (problems_.size() < kMostProblems) {
    problems_.push_back(std::move(problem));
  }
}

std::vector<std::string> Collector::problems() const {
  std::vector<std::string> all = problems_;
  for (const auto& [path, unready] : unready_) {
    if (all.size() < kMostProblems) {
      all.push_back(fmt::format("{}: the ring {}", path.string(), unready.problem));
    }
  }
  return all;
}

}  // namespace unidle::observe
