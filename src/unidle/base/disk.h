// The calls that change files, as an interface, so that a disk that refuses can be faked.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <system_error>

namespace unidle {

class FileAttributes;

/// Thread-safe. Each call is the system's of that name, and fails as it does: -1, and errno says why.
class Disk {
 public:
  virtual ~Disk() = default;
  /// mkostemp: the last six characters of `pattern` are replaced.
  virtual int open_temporary(char* pattern) = 0;
  virtual ssize_t write(int fd, const void* bytes, std::size_t count) = 0;
  virtual int fsync(int fd) = 0;
  virtual int fchmod(int fd, mode_t mode) = 0;
  /// All of FileAttributes::give_to.
  virtual int give(const FileAttributes& attributes, int fd) = 0;
  virtual int rename(const char* from, const char* to) = 0;
  virtual int unlink(const char* path) = 0;
  /// The folder and its parents; that they are there is no failure.
  virtual int make_folders(const std::filesystem::path& path) = 0;
};

/// The real one; one for the process, stateless.
Disk& system_disk();

}  // namespace unidle
