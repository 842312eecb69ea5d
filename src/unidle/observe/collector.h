// Reads the files that the processes of a run write, and adds them to its record.
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

/// Follows the rings, notes and stretches in one folder. Reads the files of ended processes to their end and removes
/// them, so that the work does not grow with the number of processes. The position in each file is committed with what
/// was read from it: after a kill -9 between any two calls, another collector continues there, and nothing is lost or
/// read twice. Not thread-safe. Throws what the writer throws.
class Collector {
 public:
  /// `writer` and `events` must outlive the collector; `writer` commits on flush() only.
  Collector(std::filesystem::path folder, record::Writer& writer, EventWriter& events,
            probe::OpenFile opener = probe::open_file);

  /// Continues where a killed collector stopped. Call it before anything else.
  void resume(const record::ResumePoint& point);
  /// Reads all rings. Call it often.
  void take_events();
  /// Whether a ring is nearly full: time to commit.
  bool nearly_full() const;
  /// Reads everything at the end of the run: also rings that could not be opened earlier, and steps that are only
  /// marked. Their processes may still run.
  void take_all_events();
  /// Reads all notes. Call it once a second. Notes without a time get `now_ns`.
  void take_notes(std::int64_t now_ns);
  /// Call before each commit.
  void write_positions();
  /// Call after each commit: releases what was read from the rings, and removes the files of ended processes.
  void settle();
  /// Removes all files of processes, once the run is over and everything is committed.
  void remove_files();

  std::set<std::int64_t> reporting() const { return processes_.pids(); }
  bool has_rings() const { return !rings_.empty(); }
  bool probe_seen() const { return probe_seen_; }
  bool python_seen() const { return python_seen_; }
  std::uint64_t dropped() const;
  std::uint64_t events_refused() const;
  std::uint64_t notes_refused() const;
  /// The first errors of reading.
  std::vector<std::string> problems() const;

 private:
  struct Ring {
    std::unique_ptr<probe::RingReader> reader;
    record::Position position;
    bool done = false;    // read to its end
    bool changed = true;  // since its position was last written
  };
  struct Notes {
    probe::NotesReader reader;
    record::Position position;
    int quiet = 0;  // consecutive rounds without a new note
    bool changed = true;
    bool removed = false;  // file deleted; the next round reads what its last writer adds, then a new file
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
  std::map<std::string, record::Position> earlier_;  // positions of the previous collector, by file name
  std::map<Path, Ring> rings_;
  std::map<Path, Notes> notes_;
  std::map<Path, Unready> unready_;
  std::set<Path> stretches_;
  std::set<Path> read_stretches_;  // of ended processes
  std::vector<probe::Slot> slots_;
  std::uint64_t round_ = 0;
  std::uint64_t dropped_ = 0;  // sums over closed rings, as the next two
  std::uint64_t refused_ = 0;
  std::uint64_t notes_refused_ = 0;
  bool probe_seen_ = false;
  bool python_seen_ = false;
  std::vector<std::string> problems_;
};

}  // namespace unidle::observe
