#include "unidle/base/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "unidle/base/file_attributes.h"

namespace unidle {

namespace {

class SystemDisk final : public Disk {
 public:
  int open_temporary(char* pattern) override { return ::mkostemp(pattern, O_CLOEXEC); }
  ssize_t write(int fd, const void* bytes, std::size_t count) override { return ::write(fd, bytes, count); }
  int fsync(int fd) override { return ::fsync(fd); }
  int fchmod(int fd, mode_t mode) override { return ::fchmod(fd, mode); }
  int give(const FileAttributes& attributes, int fd) override { return attributes.give_to(fd) ? 0 : -1; }
  int rename(const char* from, const char* to) override { return ::rename(from, to); }
  int unlink(const char* path) override { return ::unlink(path); }
  int make_folders(const std::filesystem::path& path) override {
    std::error_code failure;
    std::filesystem::create_directories(path, failure);
    errno = failure.value();
    return failure ? -1 : 0;
  }
};

}  // namespace

Disk& system_disk() {
  static SystemDisk disk;
  return disk;
}

}  // namespace unidle
