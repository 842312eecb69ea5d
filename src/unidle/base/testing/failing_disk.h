// A disk that fails from some call on.
#pragma once

#include <atomic>
#include <cerrno>
#include <limits>

#include "unidle/base/disk.h"

namespace unidle::testing {

/// The real disk until `fail_from` calls were made; from then on each call fails with `error`, or with `once` only that
/// one. A failing write has written some of its bytes. Unlinking always works, as on a full disk. Thread-safe.
class FailingDisk final : public Disk {
 public:
  using Disk::write;
  int create(const std::filesystem::path& path, int& fd) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::create(path, fd);
  }
  int create_temporary(std::string& path, int& fd) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::create_temporary(path, fd);
  }
  int set_mode(int fd, mode_t mode) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::set_mode(fd, mode);
  }
  int give(const FileAttributes& attributes, int fd) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::give(attributes, fd);
  }
  int write(int fd, std::span<iovec> pieces) override {
    const int failure = next();
    if (failure == 0) {
      return Disk::write(fd, pieces);
    }
    iovec half = {pieces.front().iov_base, pieces.front().iov_len / 2};  // a partial write
    Disk::write(fd, {&half, 1});
    return failure;
  }
  int sync(int fd) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::sync(fd);
  }
  int sync_all(int fd) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::sync_all(fd);
  }
  bool sync_includes_names(const std::filesystem::path&) override { return names_go_along; }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::rename(from, to);
  }
  int make_folders(const std::filesystem::path& path) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::make_folders(path);
  }
  int map(int fd, std::size_t bytes, void*& address) override {
    return no_maps ? ENODEV : Disk::map(fd, bytes, address);
  }

  /// Whether a call has failed.
  bool failed() const { return calls > fail_from; }

  static constexpr int kNever = std::numeric_limits<int>::max();
  std::atomic<int> fail_from{kNever};
  std::atomic<int> calls{0};
  std::atomic<bool> no_maps{false};
  bool once = false;
  bool names_go_along = false;
  int error = ENOSPC;

 private:
  int next() {
    const int call = calls++;
    return (once ? call == fail_from : call >= fail_from) ? error : 0;
  }
};

/// Calls action(disk) with a disk whose first call fails, then the second, and so on until none fails: each call once
/// alone, and once with all later ones.
template <typename Action>
void at_each_failure(Action action) {
  for (const bool once : {true, false}) {
    bool failed = true;
    for (int call = 0; failed; ++call) {
      FailingDisk disk;
      disk.fail_from = call;
      disk.once = once;
      action(disk);
      failed = disk.failed();
    }
  }
}

}  // namespace unidle::testing
