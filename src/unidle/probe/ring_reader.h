// The reading side of rings and notes. Files come from other programs: every field is checked, nothing is trusted.
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

/// Opens a file as open(2) does: the readers open theirs by it, so that a test can count.
using OpenFile = std::function<int(const char* path, int flags)>;
int open_file(const char* path, int flags);

/// Drains one ring, of a process that lives or is dead. One reader a ring; not thread-safe.
class RingReader {
 public:
  /// Nothing while the file is not yet whole (its process is just making it) or is damaged; `problem` then says
  /// what is wrong, as far as that can be told.
  static std::unique_ptr<RingReader> open(const std::filesystem::path& path, std::string& problem,
                                          const OpenFile& opener = open_file);
  ~RingReader();
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;

  std::int64_t pid() const { return pid_; }
  const std::string& role() const { return role_; }
  /// With the pid, who writes it: in clock ticks since the machine started; 0: not known.
  std::uint64_t process_start() const { return process_start_; }
  std::uint64_t started_ns() const { return started_ns_; }
  /// Number of the next event, from 0.
  std::uint64_t position() const { return position_; }
  /// Leaves out the events before that number: another reader has taken them.
  void skip_to(std::uint64_t position);

  /// Appends what has come since the last call. Events that cannot be are left out and counted. A ring found damaged
  /// yields nothing from then on.
  void drain(std::vector<Slot>& events);
  /// Gives the room of what was drained back to the writer. Until then another reader would find it all.
  void release();
  /// Whether so much was drained and not released that the writer may soon run out of room.
  bool crowded() const { return position_ - released_ > capacity_ / 4; }
  /// Events that its writer had to drop because the ring was full.
  std::uint64_t dropped() const;
  /// Events left out because their fields cannot be.
  std::uint64_t refused() const { return refused_; }
  bool damaged() const { return damaged_; }
  /// The writer has closed it or has ended: once drained, nothing more comes.
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
  /// From byte `offset` on, where a line begins.
  explicit NotesReader(std::filesystem::path path, std::int64_t offset = 0, OpenFile opener = open_file)
      : path_(std::move(path)), opener_(std::move(opener)), offset_(offset) {}

  /// Calls `note` with every whole line since the last call; lines that are no JSON object are counted and left out.
  void drain(const std::function<void(nlohmann::json)>& note);
  /// Removes the file, where nothing has come into it since the last drain. Processes make theirs anew when there is
  /// more to tell; what one is just writing is still taken by one more drain. False: it is still there.
  bool remove_read();
  /// Bytes of the lines that were taken.
  std::int64_t position() const { return offset_ - static_cast<std::int64_t>(rest_.size()); }
  std::uint64_t refused() const { return refused_; }

 private:
  void take_lines(const std::function<void(nlohmann::json)>& note);

  std::filesystem::path path_;
  OpenFile opener_;
  UniqueFd removed_;  // of a file that is removed: its last writer may not have closed it yet
  std::int64_t offset_;
  std::string rest_;  // of a line that is not whole yet
  std::uint64_t refused_ = 0;
};

}  // namespace unidle::probe
