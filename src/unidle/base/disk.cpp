#include "unidle/base/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "unidle/base/file_attributes.h"
#include "unidle/base/files.h"

namespace unidle {

int Disk::create(const std::filesystem::path& path, int& fd) {
  fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return fd >= 0 ? 0 : errno;
}

int Disk::create_temporary(std::string& path, int& fd) {
  fd = ::mkostemp(path.data(), O_CLOEXEC);
  return fd >= 0 ? 0 : errno;
}

int Disk::set_mode(int fd, mode_t mode) { return ::fchmod(fd, mode) == 0 ? 0 : errno; }

int Disk::give(const FileAttributes& attributes, int fd) { return attributes.give_to(fd) ? 0 : errno; }

int Disk::write(int fd, std::span<iovec> pieces) {
  constexpr std::size_t kMost = 512;  // IOV_MAX is 1024
  while (!pieces.empty()) {
    ssize_t put = ::writev(fd, pieces.data(), static_cast<int>(std::min(pieces.size(), kMost)));
    if (put < 0 && errno != EINTR) {
      return errno;
    }
    put = std::max<ssize_t>(put, 0);
    while (!pieces.empty() && static_cast<std::size_t>(put) >= pieces.front().iov_len) {
      put -= static_cast<ssize_t>(pieces.front().iov_len);
      pieces = pieces.subspan(1);
    }
    if (put > 0) {
      pieces.front().iov_base = static_cast<char*>(pieces.front().iov_base) + put;
      pieces.front().iov_len -= static_cast<std::size_t>(put);
    }
  }
  return 0;
}

int Disk::write(int fd, std::string_view bytes) {
  iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
  return write(fd, {&piece, 1});
}

int Disk::sync(int fd) { return ::fdatasync(fd) == 0 ? 0 : errno; }

int Disk::sync_all(int fd) { return ::fsync(fd) == 0 ? 0 : errno; }

bool Disk::sync_includes_names(const std::filesystem::path& path) {
  struct stat status {};
  const auto mounts = try_read_file("/proc/self/mountinfo");
  if (::stat(path.c_str(), &status) != 0 || !mounts) {
    return false;
  }
  const std::string device = fmt::format(" {}:{} ", major(status.st_dev), minor(status.st_dev));
  std::istringstream lines(*mounts);
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t type = line.find(" - "); line.find(device) < type && type != std::string::npos) {
      return line.compare(type, 8, " - ext4 ") == 0 || line.compare(type, 7, " - xfs ") == 0;
    }
  }
  return false;
}

void Disk::begin_sync(int fd) { ::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE); }

int Disk::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

int Disk::unlink(const std::filesystem::path& path) { return ::unlink(path.c_str()) == 0 ? 0 : errno; }

int Disk::make_folders(const std::filesystem::path& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  return failure.value();
}

int Disk::map(int fd, std::size_t bytes, void*& address) {
  constexpr std::size_t kSmall = 1 << 20;
  address = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED | (bytes <= kSmall ? MAP_POPULATE : 0), fd, 0);
  return address != MAP_FAILED ? 0 : errno;
}

Disk& system_disk() {
  static Disk disk;
  return disk;
}

}  // namespace unidle
