// Files: whole reads, atomic writes, temporary folders, and a replaceable root folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/base/handle.h"

namespace unidle {

/// Reads the whole file. Throws kInput when it cannot be opened or read, or is not a regular file: a folder, FIFO,
/// socket or device is never opened for reading, so that the call never blocks.
std::string read_file(const std::filesystem::path& path);

/// What a path is instead of a regular file, as the end of a sentence: "is a pipe"; nothing for a regular file or if it
/// does not exist.
std::optional<std::string> why_no_file(const std::filesystem::path& path);

/// The type of `path`, following links; a missing file is not an error. Throws kInput when the system cannot say: a
/// circle of links, a name too long, a folder without permission.
std::filesystem::file_status status_of(const std::filesystem::path& path);

/// Converts an exception of std::filesystem to an Error (kIo); names its path, or the current folder if it has none.
Error file_system_error(const std::filesystem::filesystem_error& failure);

/// The whole file, or nothing when it is absent or unreadable: for /proc and /sys, where absence is normal.
std::optional<std::string> try_read_file(const std::filesystem::path& path);

/// Functions that change files take a disk; tests pass one that fails, see disk.h.
class Disk;
Disk& system_disk();

/// Writes a temporary file beside `path`, syncs and renames it, so that a reader sees either the old or the new bytes.
/// Follows links. Writes directly into a device, a FIFO or /dev/stdout, because only regular files are replaced. Throws
/// kIo naming `path`; the temporary file is removed.
void write_file_atomic(const std::filesystem::path& path, std::string_view bytes, Disk& disk = system_disk());

/// The same for a copy or successor of `like`: takes over its mode, owner, group, access list and extended attributes,
/// as far as this user may. At no time can a user read it who may not read `like`.
void write_file_like(const std::filesystem::path& path, std::string_view bytes, const std::filesystem::path& like,
                     Disk& disk = system_disk());

/// Replaces the bytes of an existing file and keeps everything else, like write_file_like. Follows links. Throws
/// kInput, and changes nothing, when the file is read-only, has other names (hard links, which would keep the old
/// bytes), is not a regular file, or would change its owner.
void replace_file(const std::filesystem::path& path, std::string_view bytes, Disk& disk = system_disk());

/// Creates the folder and its parents. Throws kIo naming the path.
void make_folders(const std::filesystem::path& path, Disk& disk = system_disk());

/// Removes `path` and everything in it, including folders that its owner may not read. What cannot be removed stays.
void remove_tree(const std::filesystem::path& path);

/// A folder that is removed with its content at the end of its scope.
class TemporaryFolder {
 public:
  /// Creates the folder in $TMPDIR or /tmp.
  explicit TemporaryFolder(std::string_view prefix = "unidle");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

  /// Removes this user's folders of that prefix that are older than a minute and whose process was killed.
  static void sweep(std::string_view prefix);

 private:
  std::filesystem::path path_;
  UniqueFd lock_;  // on the folder; held while the owner is alive
};

/// Root of /proc, /sys and cgroup files: $UNIDLE_HOST_ROOT, or "/".
std::filesystem::path host_root();

/// The folder .unidle: $UNIDLE_HOME if set, otherwise ".unidle" in the current folder.
std::filesystem::path home_folder();

/// The folder of the running program, to find the files installed with it.
std::filesystem::path program_folder();

}  // namespace unidle
