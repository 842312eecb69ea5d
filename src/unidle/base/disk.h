// The calls by which files get onto the disk and off it, so that tests can make any of them fail.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace unidle {

class FileAttributes;

/// Each call does what the system call of that name does and returns 0, or what went wrong as errno. Thread-safe.
class Disk {
 public:
  virtual ~Disk() = default;
  /// A new file, for reading and writing, with the user's umask; its descriptor in `fd`.
  virtual int create(const std::filesystem::path& path, int& fd);
  /// The same with a name of its own, private: the last six characters of `path`, XXXXXX, are replaced.
  virtual int create_temporary(std::string& path, int& fd);
  virtual int set_mode(int fd, mode_t mode);
  virtual int give(const FileAttributes& attributes, int fd);
  /// Writes all of it, however many calls that takes.
  virtual int write(int fd, std::span<iovec> pieces);
  int write(int fd, std::string_view bytes);
  /// The bytes of the file are on the disk.
  virtual int sync(int fd);
  /// The same, with all else that the file system keeps of the file.
  virtual int sync_all(int fd);
  /// On the file system that `path` lies on, sync_all() of a file that got a new name brings the name to the disk, too,
  /// with the folders above it: it keeps one journal, in order. POSIX asks for the folder to be synced.
  virtual bool names_go_with_files(const std::filesystem::path& path);
  /// A hint that sync() comes: the disk may begin to write. Promises nothing, so nothing can fail.
  virtual void begin_sync(int fd);
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
  virtual int unlink(const std::filesystem::path& path);
  /// The folder and its parents. That it is there is no failure.
  virtual int make_folders(const std::filesystem::path& path);
  /// Maps a file for reading, with its pages brought in where it is small.
  virtual int map(int fd, std::size_t bytes, void*& address);
};

/// The real one; stateless.
Disk& system_disk();

}  // namespace unidle
