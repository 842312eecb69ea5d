// From the files by which the processes of a run report to its record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "unidle/base/handle.h"
#include "unidle/observe/events.h"
#include "unidle/observe/processes.h"
#include "unidle/probe/ring_reader.h"
#include "unidle/probe/stretch_reader.h"
#include "unidle/record/record.h"

namespace unidle::observe {

/// Follows the rings, notes and stretches in one folder. What a process that has ended left is read, and its files are
/// removed, so that the work does not grow with the processes that there ever were. How far each file has come is
/// written with what was read of it: after a kill -9 between any two calls another collector goes on where this one
/// was, and nothing is lost or taken twice. Not thread-safe. Throws what the writer throws.
class Collector {
 public:
  /// The writer and the event writer must outlive it; the writer commits on flush() only.
  Collector(std::filesystem::path folder, record::Writer& writer, EventWriter& events,
            probe::OpenFile opener = probe::open_file);

  /// Goes on where another one was; before anything else.
  void resume(const record::ResumePoint& point);
  /// All rings; often.
  void take_events();
  /// Whether a ring may soon have no room for what comes: time to commit.
  bool crowded() const;
  /// All there is, at the end: also rings that could not be opened earlier, and steps that are marked and not yet told
  /// of. Their processes may live.
  void take_all_events();
  /// All notes; once a second. `now_ns` is the time of those that have none.
  void take_notes(std::int64_t now_ns);
  /// Before each commit.
  void write_positions();
  /// After each commit: rings have room again, and the files of processes that have ended are removed.
  void settle();
  /// The run is over and all is committed: removes all files of processes.
  void remove_files();

  std::set<std::int64_t> reporting() const { return processes_.pids(); }
  bool has_rings() const { return !rings_.empty(); }
  bool probe_seen() const { return probe_seen_; }
  bool python_seen() const { return python_seen_; }
  std::uint64_t dropped() const;
  std::uint64_t events_refused() const;
  std::uint64_t notes_refused() const;
  /// What could not be read; the first ones.
  std::vector<std::string> problems() const;

 private:
  struct Ring {
    std::unique_ptr<probe::RingReader> reader;
    record::Position position;
    bool done = false;    // read to its end
    bool changed = true;  // since its position was written
  };
  struct Notes {
    probe::NotesReader reader;
    record::Position position;
    int quiet = 0;  // rounds in a row in which nothing came
    bool changed = true;
    bool removed = false;  // the file is gone; what its last writer may still add is read in the next round, and then a
                           // new file of the same name
  };
  struct Unready {
    std::string problem;
    std::uint64_t tries = 0;
    std::uint64_t next_round = 0;
  };
  using Path = std::filesystem::path;

  void find_files(bool everything);
  void open_ring(const Path& path, bool everything);
  void open_notes(const Path& path);
  const record::Position* earlier(const Path& path) const;
  void drain(Ring& ring);
  void end(const Path& path, Ring& ring);
  void drain_rings(bool everything);
  void take_stretch(const Path& path, const probe::Stretch& stretch);
  void take_notes_of(Notes& notes, std::int64_t now_ns);
  void add_problem(std::string problem);

  Path folder_;
  record::Writer& writer_;
  EventWriter& events_;
  probe::OpenFile opener_;
  Processes processes_;
  std::map<std::string, record::Position> earlier_;  // by file name, of a collector before us
  std::map<Path, Ring> rings_;
  std::map<Path, Notes> notes_;
  std::map<Path, Unready> unready_;
  std::set<Path> stretches_;
  std::set<Path> read_stretches_;  // of processes that have ended
  std::vector<probe::Slot> slots_;
  std::uint64_t round_ = 0;
  std::uint64_t dropped_ = 0;  // of rings that are gone; likewise the next two
  std::uint64_t refused_ = 0;
  std::uint64_t notes_refused_ = 0;
  bool probe_seen_ = false;
  bool python_seen_ = false;
  std::vector<std::string> problems_;
};

}  // namespace unidle::observe
