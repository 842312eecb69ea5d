// Files that are read at random places, with few of them open at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "unidle/base/handle.h"

namespace unidle::data::detail {

/// Opens files when they are first read, and closes the one that was opened longest ago when there are too many. Read,
/// not mapped: a file that becomes shorter while it is read is an error and not a signal. Thread-safe but for add().
class OpenFiles {
 public:
  explicit OpenFiles(std::size_t most_open = 128) : most_open_(most_open) {}

  /// Returns the file's number. Throws kInput when it is no plain file.
  std::size_t add(const std::string& path);
  const std::string& path(std::size_t file) const { return files_[file].path; }
  std::uint64_t bytes(std::size_t file) const { return files_[file].bytes; }  // when it was added
  timespec changed(std::size_t file) const { return files_[file].changed; }   // its last change before that

  /// Reads all of `to` from `offset`. Throws kInput naming the path when the file ends before, or is no longer what it
  /// was when it was added.
  void read(std::size_t file, std::uint64_t offset, std::span<std::byte> to);
  /// The system may read these bytes ahead. Does not wait for them, and does not fail.
  void will_need(std::size_t file, std::uint64_t offset, std::uint64_t bytes);

 private:
  struct File {
    std::string path;
    std::uint64_t bytes;
    timespec changed;
    std::uint64_t identity[2];     // device and number
    std::shared_ptr<UniqueFd> fd;  // guarded by mutex_
  };
  std::shared_ptr<UniqueFd> open(std::size_t file);
  /// Throws kInput. Also of a file that was written over in its place.
  void require_unchanged(std::size_t file, int fd) const;

  std::size_t most_open_;
  std::vector<File> files_;
  std::mutex mutex_;
  std::deque<std::size_t> opened_;  // in their order
};

}  // namespace unidle::data::detail
