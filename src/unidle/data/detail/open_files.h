// Random access to many files with few of them open.
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

/// Opens files at their first read, and closes the one opened longest ago when there are too many. Reads instead of
/// mapping: a file that shrinks meanwhile is an error, not a signal. Thread-safe except for add().
class OpenFiles {
 public:
  explicit OpenFiles(std::size_t most_open = 128) : most_open_(most_open) {}

  /// Returns the file's number. Throws kInput unless it is a regular file.
  std::size_t add(const std::string& path);
  const std::string& path(std::size_t file) const { return files_[file].path; }
  std::uint64_t bytes(std::size_t file) const { return files_[file].bytes; }  // when it was added
  timespec changed(std::size_t file) const { return files_[file].changed; }   // last change before that

  /// Reads all of `to` from `offset`. Throws kInput with the path when the file is shorter or has changed since it was
  /// added.
  void read(std::size_t file, std::uint64_t offset, std::span<std::byte> to);
  /// A hint to read these bytes ahead. Does not wait and does not fail.
  void will_need(std::size_t file, std::uint64_t offset, std::uint64_t bytes);

 private:
  struct File {
    std::string path;
    std::uint64_t bytes;
    timespec changed;
    std::uint64_t identity[2];     // device and inode
    std::shared_ptr<UniqueFd> fd;  // guarded by mutex_
  };
  std::shared_ptr<UniqueFd> open(std::size_t file);
  /// Throws kInput, also for a file that was overwritten in place.
  void require_unchanged(std::size_t file, int fd) const;

  std::size_t most_open_;
  std::vector<File> files_;
  std::mutex mutex_;
  std::deque<std::size_t> opened_;  // in the order they were opened
};

}  // namespace unidle::data::detail
