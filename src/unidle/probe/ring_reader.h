// Reads rings and notes. Other programs write these files: every field is checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "unidle/base/handle.h"
#include "unidle/probe/ring.h"

namespace unidle::probe {

/// Opens a file like open(2). A test passes its own function to count calls.
using OpenFile = std::function<int(const char* path, int flags)>;
int open_file(const char* path, int flags);

/// Drains the ring of one process, alive or dead. One reader per ring; not thread-safe.
class RingReader {
 public:
  /// Returns nothing while the file is incomplete (its process is still creating it) or if it is damaged; `problem`
  /// then says what is wrong, if known.
  static std::unique_ptr<RingReader> open(const std::filesystem::path& path, std::string& problem,
                                          const OpenFile& opener = open_file);
  ~RingReader();
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;

  std::int64_t pid() const { return pid_; }
  const std::string& role() const { return role_; }
  /// Identifies the writer together with the pid: in clock ticks since boot; 0: unknown.
  std::uint64_t process_start() const { return process_start_; }
  std::uint64_t started_ns() const { return started_ns_; }
  /// Number of the next event, from 0.
  std::uint64_t position() const { return position_; }
  /// Skips the events before that number: another reader has taken them.
  void skip_to(std::uint64_t position);

  /// Appends the events since the last call. Invalid events are skipped and counted. A damaged ring yields nothing from
  /// then on.
  void drain(std::vector<Slot>& events);
  /// Releases the slots of drained events to the writer. Until then another reader would read them again.
  void release();
  /// Whether so many events are drained but not released that the ring may soon be full.
  bool nearly_full() const { return position_ - released_ > capacity_ / 4; }
  /// Events that the writer dropped because the ring was full.
  std::uint64_t dropped() const;
  /// Events skipped because their fields are invalid.
  std::uint64_t refused() const { return refused_; }
  bool damaged() const { return damaged_; }
  /// The writer has closed the ring or has ended: after a last drain, no more events come.
  bool closed() const;

 private:
  RingReader(int fd, RingHeader* header, std::uint64_t capacity);

  int fd_;
  RingHeader* header_;
  std::uint64_t capacity_;
  std::uint64_t position_;
  std::uint64_t released_;
  std::int64_t pid_ = 0;
  std::uint64_t process_start_ = 0;
  std::uint64_t started_ns_ = 0;
  std::string role_;
  std::uint64_t refused_ = 0;
  bool damaged_ = false;
};

/// Follows one notes file. Not thread-safe.
class NotesReader {
 public:
  /// Starts at byte `offset`, the start of a line.
  explicit NotesReader(std::filesystem::path path, std::int64_t offset = 0, OpenFile opener = open_file)
      : path_(std::move(path)), opener_(std::move(opener)), offset_(offset) {}

  /// Calls `note` for every complete line since the last call; lines that are not a JSON object are skipped and
  /// counted.
  void drain(const std::function<void(nlohmann::json)>& note);
  /// Removes the file if nothing was written to it since the last drain. Processes create theirs again when they write
  /// more; one more drain reads a line that is being written now. Returns false if the file still exists.
  bool remove_read();
  /// Bytes of the lines read so far.
  std::int64_t position() const { return offset_ - static_cast<std::int64_t>(rest_.size()); }
  std::uint64_t refused() const { return refused_; }

 private:
  void take_lines(const std::function<void(nlohmann::json)>& note);

  std::filesystem::path path_;
  OpenFile opener_;
  UniqueFd removed_;  // the removed file: its last writer may not have closed it yet
  std::int64_t offset_;
  std::string rest_;  // start of an incomplete line
  std::uint64_t refused_ = 0;
};

}  // namespace unidle::probe
