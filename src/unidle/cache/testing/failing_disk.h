// A disk that refuses from some call on.
#pragma once

#include <atomic>
#include <cerrno>
#include <limits>

#include "unidle/cache/disk.h"

namespace unidle::cache::testing {

/// The real disk until `fail_from` calls were made; from then on each call fails with `error`, or, with `once`, only
/// that one. Unlinking always works, as on a full disk. Thread-safe.
class FailingDisk final : public Disk {
 public:
  int create(const std::filesystem::path& path, int& fd) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::create(path, fd);
  }
  int write(int fd, std::span<iovec> pieces) override {
    const int failure = next();
    if (failure == 0) {
      return Disk::write(fd, pieces);
    }
    iovec half = {pieces.front().iov_base, pieces.front().iov_len / 2};  // some of it gets there
    Disk::write(fd, {&half, 1});
    return failure;
  }
  int sync(int fd) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::sync(fd);
  }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    const int failure = next();
    return failure != 0 ? failure : Disk::rename(from, to);
  }
  int map(int fd, std::size_t bytes, void*& address) override {
    return no_maps ? ENODEV : Disk::map(fd, bytes, address);
  }

  static constexpr int kNever = std::numeric_limits<int>::max();
  std::atomic<int> fail_from{kNever};
  std::atomic<int> calls{0};
  std::atomic<bool> no_maps{false};
  bool once = false;
  int error = ENOSPC;

 private:
  int next() {
    const int call = calls++;
    return (once ? call == fail_from : call >= fail_from) ? error : 0;
  }
};

}  // namespace unidle::cache::testing
