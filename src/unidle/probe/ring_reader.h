// The reading side of rings and notes. Files come from other programs: every field is checked, nothing is trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unidle/probe/unidle_probe.h"

namespace unidle::probe {

struct RingHeader;

/// Drains one ring, of a process that lives or is dead. One reader a ring; not thread-safe.
class RingReader {
 public:
  /// Nothing while the file is not yet whole (its process is just making it) or is damaged; `problem` then says
  /// what is wrong, as far as that can be told.
  static std::unique_ptr<RingReader> open(const std::filesystem::path& path, std::string& problem);
  ~RingReader();
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;

  std::int64_t pid() const { return pid_; }
  const std::string& role() const { return role_; }

  /// Appends what has come since the last call and frees its room in the ring. Events that cannot be are left out
  /// and counted. A ring found damaged yields nothing from then on.
  void drain(std::vector<unidle_event>& events);
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
  std::uint64_t tail_;
  std::int64_t pid_ = 0;
  std::string role_;
  std::uint64_t refused_ = 0;
  bool damaged_ = false;
};

/// Follows one notes file. Not thread-safe.
class NotesReader {
 public:
  explicit NotesReader(std::filesystem::path path) : path_(std::move(path)) {}

  /// Calls `note` with every whole line since the last call; lines that are no JSON object are counted and left out.
  void drain(const std::function<void(nlohmann::json)>& note);
  std::uint64_t refused() const { return refused_; }

 private:
  void take_lines(const std::function<void(nlohmann::json)>& note);

  std::filesystem::path path_;
  std::int64_t offset_ = 0;
  std::string rest_;  // of a line that is not whole yet
  std::uint64_t refused_ = 0;
};

}  // namespace unidle::probe
