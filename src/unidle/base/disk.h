// The system calls that change files, as an interface, so that tests can make each of them fail.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace unidle {

class FileAttributes;

/// Each call does what the system call of its name does and returns 0 or errno. Thread-safe.
class Disk {
 public:
  virtual ~Disk() = default;
  /// Creates a file for reading and writing, with the user's umask; sets `fd`.
  virtual int create(const std::filesystem::path& path, int& fd);
  /// Creates a private file with a unique name: replaces the last six characters of `path`, XXXXXX.
  virtual int create_temporary(std::string& path, int& fd);
  virtual int set_mode(int fd, mode_t mode);
  virtual int give(const FileAttributes& attributes, int fd);
  /// Writes everything, in as many calls as needed.
  virtual int write(int fd, std::span<iovec> pieces);
  int write(int fd, std::string_view bytes);
  /// fdatasync: writes the file's bytes to the disk.
  virtual int sync(int fd);
  /// fsync: also writes the file's metadata.
  virtual int sync_all(int fd);
  /// Whether on the file system of `path`, sync_all() of a renamed file also writes its new name, and the folders above
  /// it, to the disk, because the file system keeps one ordered journal. POSIX requires a sync of the folder.
  virtual bool sync_includes_names(const std::filesystem::path& path);
  /// A hint that sync() will follow: the disk may start writing. Cannot fail.
  virtual void begin_sync(int fd);
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
  virtual int unlink(const std::filesystem::path& path);
  /// Creates the folder and its parents. An existing folder is not an error.
  virtual int make_folders(const std::filesystem::path& path);
  /// Maps a file for reading; loads the pages of a small file.
  virtual int map(int fd, std::size_t bytes, void*& address);
};

/// The real disk; stateless.
Disk& system_disk();

}  // namespace unidle
