#pragma once

#include <cerrno>

#include "unidle/base/disk.h"

namespace unidle::testing {

/// Passes calls on to the system's disk and refuses the n-th of those that make or change something, counted from 1.
/// A write that is refused has written the half of its bytes, as on a disk that gets full. Removing is always allowed.
class RefusingDisk final : public Disk {
 public:
  enum class For { kOnce, kGood };

  RefusingDisk(int n, For how_long, int error_number = ENOSPC) : n_(n), how_long_(how_long), error_(error_number) {}

  /// False when the n-th call never came.
  bool refused() const { return calls_ >= n_; }

  int open_temporary(char* pattern) override { return refuses() ? -1 : system_disk().open_temporary(pattern); }
  ssize_t write(int fd, const void* bytes, std::size_t count) override {
    if (!refuses()) {
      return system_disk().write(fd, bytes, count);
    }
    (void)system_disk().write(fd, bytes, count / 2);
    errno = error_;
    return -1;
  }
  int fsync(int fd) override { return refuses() ? -1 : system_disk().fsync(fd); }
  int fchmod(int fd, mode_t mode) override { return refuses() ? -1 : system_disk().fchmod(fd, mode); }
  int give(const FileAttributes& attributes, int fd) override {
    return refuses() ? -1 : system_disk().give(attributes, fd);
  }
  int rename(const char* from, const char* to) override { return refuses() ? -1 : system_disk().rename(from, to); }
  int unlink(const char* path) override { return system_disk().unlink(path); }
  int make_folders(const std::filesystem::path& path) override {
    return refuses() ? -1 : system_disk().make_folders(path);
  }

 private:
  bool refuses() {
    ++calls_;
    const bool refused = how_long_ == For::kOnce ? calls_ == n_ : calls_ >= n_;
    errno = refused ? error_ : errno;
    return refused;
  }

  int n_;
  For how_long_;
  int error_;
  int calls_ = 0;
};

/// Calls action(disk) with a disk that refuses the first call, the second, ... until none is refused any more: each
/// once by itself, and once with all that come after it.
template <typename Action>
void at_each_refusal(Action action) {
  for (const auto how_long : {RefusingDisk::For::kOnce, RefusingDisk::For::kGood}) {
    for (int n = 1;; ++n) {
      RefusingDisk disk(n, how_long);
      action(disk);
      if (!disk.refused()) {
        break;
      }
    }
  }
}

}  // namespace unidle::testing
