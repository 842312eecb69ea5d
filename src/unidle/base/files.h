// Files: whole reads, atomic writes, temporary folders, and the folder that stands for "/".
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/base/handle.h"

namespace unidle {

/// The whole file. Throws kInput when it cannot be opened or read, or is no file: a folder, a pipe, a socket or a
/// device is never opened for reading, and so never waited for.
std::string read_file(const std::filesystem::path& path);

/// What a path is that is no plain file, as a sentence goes on: "is a pipe"; nothing for a file and for what is not
/// there.
std::optional<std::string> why_no_file(const std::filesystem::path& path);

/// What is at `path`, links followed; that nothing is there is no failure. Throws kInput when the system does not tell:
/// a circle of links, a name too long, a folder that may not be entered.
std::filesystem::file_status status_of(const std::filesystem::path& path);

/// What a call of std::filesystem threw, as one of the family (kIo): it names the path, or the current folder where
/// there is none.
Error file_system_error(const std::filesystem::filesystem_error& failure);

/// The whole file, or nothing when it is absent or unreadable: for /proc and /sys, where absence is normal.
std::optional<std::string> try_read_file(const std::filesystem::path& path);

/// Where what changes files takes a disk, tests give one that refuses; see disk.h.
class Disk;
Disk& system_disk();

/// Writes through a temporary name beside `path`, synced and renamed, so that a reader sees the old bytes
/// or the new ones and never half of either. A link is followed; a device, a pipe or /dev/stdout is written into, for
/// nothing but a file is replaced by one. Throws kIo naming `path`; the temporary file is removed.
void write_file_atomic(const std::filesystem::path& path, std::string_view bytes, Disk& disk = system_disk());

/// The same for a copy or a successor of `like`: mode, owner, group, access list and extended attributes are those of
/// `like`, as far as this user may give them, and at no moment may anybody read it who may not read `like`.
void write_file_like(const std::filesystem::path& path, std::string_view bytes, const std::filesystem::path& like,
                     Disk& disk = system_disk());

/// Gives the file at `path` new bytes and leaves all else of it as it is, in the way of write_file_like. A link stays a
/// link, and what it leads to is changed. Throws kInput, with nothing touched, when the file is read-only, has other
/// names (hard links, which would keep the old bytes), is no plain file, or would get another owner.
void replace_file(const std::filesystem::path& path, std::string_view bytes, Disk& disk = system_disk());

/// Creates the folder and its parents. Throws kIo naming the path.
void make_folders(const std::filesystem::path& path, Disk& disk = system_disk());

/// Removes what `path` names with all that is in it, also what its owner may not read. What cannot be removed stays.
void remove_tree(const std::filesystem::path& path);

/// A folder that is removed with its content when it goes out of scope.
class TemporaryFolder {
 public:
  /// Under $TMPDIR or /tmp.
  explicit TemporaryFolder(std::string_view prefix = "unidle");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

  /// Removes folders of this user with that prefix, older than a minute, whose program was killed before it could.
  static void sweep(std::string_view prefix);

 private:
  std::filesystem::path path_;
  UniqueFd lock_;  // on the folder: whoever holds it lives
};

/// Where /proc, /sys and cgroup files are read from: $UNIDLE_HOST_ROOT, or "/".
std::filesystem::path host_root();

/// Where .unidle lives: $UNIDLE_HOME when set, otherwise ".unidle" in the current folder.
std::filesystem::path home_folder();

/// The folder of the running program, for finding its siblings.
std::filesystem::path program_folder();

}  // namespace unidle
