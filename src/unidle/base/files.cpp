#include "unidle/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <system_error>

#include "unidle/base/disk.h"
#include "unidle/base/error.h"
#include "unidle/base/file_attributes.h"
#include "unidle/base/signals_blocked.h"
#include "unidle/base/unfinished.h"
#include "unidle/base/write_target.h"

namespace unidle {

namespace fs = std::filesystem;

namespace {

/// What the file is instead of a regular file; null for a regular file.
const char* kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return nullptr;
    case S_IFDIR: return "is a folder";
    case S_IFIFO: return "is a pipe";
    case S_IFSOCK: return "is a socket";
    default: return "is a device";
  }
}

struct Failure {
  int number = 0;              // errno
  const char* kind = nullptr;  // set if it is not a regular file
  explicit operator bool() const { return number != 0 || kind != nullptr; }
};

Failure read_all(const fs::path& path, std::string& out) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return {0, kind_of(status.st_mode)};  // opening a device may have side effects
  }
  // O_NONBLOCK: do not wait if it has become a FIFO meanwhile.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return {errno};
  }
  if (!S_ISREG(status.st_mode)) {
    return {0, kind_of(status.st_mode)};
  }
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got > 0) {
      out.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0) {
      return {};
    } else if (errno != EINTR) {
      return {errno};
    }
  }
}

/// A rename is only durable once its folder is synced; a folder that cannot be synced is not an error.
void sync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) {
    ::fsync(fd.get());
  }
}

}  // namespace

std::string read_file(const fs::path& path) {
  std::string bytes;
  const Failure failure = read_all(path, bytes);
  if (failure.kind != nullptr) {
    throw Error(ErrorCode::kInput, path.string(), failure.kind, "a file was expected");
  }
  if (failure) {
    throw system_error(ErrorCode::kInput, path.string(), "cannot be read", failure.number);
  }
  return bytes;
}

std::optional<std::string> why_no_file(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  return kind_of(status.st_mode);
}

fs::file_status status_of(const fs::path& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() != fs::file_type::none) {
    return status;  // includes "not found", which sets `failure`
  }
  const char* const hint = failure == std::errc::too_many_symbolic_link_levels ? "its links lead in a circle"
                           : failure == std::errc::filename_too_long
                               ? "no file system takes such a name: check the path"
                           : failure == std::errc::permission_denied ? "a folder on the way may not be entered"
                                                                     : "check the path";
  throw Error(ErrorCode::kInput, path.string(), "cannot be looked at: " + failure.message(), hint);
}

Error file_system_error(const fs::filesystem_error& failure) {
  const std::string path = failure.path1().string();
  return Error(ErrorCode::kIo, path.empty() ? "the current folder" : path,
               "the file system refuses: " + failure.code().message(),
               path.empty() ? "change to a folder that is there" : "check the path and who may use it");
}

std::optional<std::string> try_read_file(const fs::path& path) {
  std::string bytes;
  if (read_all(path, bytes)) {
    return std::nullopt;
  }
  return bytes;
}

namespace {

/// Writes into `target` in place if it must be; false when a new file should replace it.
bool written_in_place(const WriteTarget& target, const fs::path& name, std::string_view bytes, Disk& disk) {
  if (!target.in_place) {
    return false;
  }
  const UniqueFd fd = open_in_place(target);
  if (const int failure = fd ? disk.write(fd.get(), bytes) : errno; failure != 0) {
    throw system_error(ErrorCode::kIo, name.string(), "cannot be written", failure);
  }
  return true;
}

/// Writes a new file under a unique name beside `path`; it is private until `prepare` sets its attributes. A signal
/// that ends the program waits until that name is gone.
template <typename Prepare>
void write_beside_and_rename(const fs::path& path, std::string_view bytes, Disk& disk, Prepare prepare) {
  const SignalsBlocked none(kEndingSignals);
  std::string temporary = fmt::format("{}{}XXXXXX", path.string(), kUnfinished);
  int made = -1;
  int failure = disk.create_temporary(temporary, made);
  UniqueFd fd(made);
  if (failure != 0) {
    throw system_error(ErrorCode::kIo, path.string(), "cannot be written", failure);
  }
  failure = prepare(fd.get());
  failure = failure == 0 ? disk.write(fd.get(), bytes) : failure;
  failure = failure == 0 ? disk.sync(fd.get()) : failure;
  fd.reset();
  failure = failure == 0 ? disk.rename(temporary, path) : failure;
  if (failure != 0) {
    disk.unlink(temporary);
    throw system_error(ErrorCode::kIo, path.string(), "cannot be written", failure);
  }
  sync_folder(path.parent_path());
}

}  // namespace

void write_file_atomic(const fs::path& path, std::string_view bytes, Disk& disk) {
  const WriteTarget target = write_target(path);
  if (!written_in_place(target, path, bytes, disk)) {
    write_beside_and_rename(target.path, bytes, disk, [&](int fd) { return disk.set_mode(fd, usual_mode()); });
  }
}

void write_file_like(const fs::path& path, std::string_view bytes, const fs::path& like, Disk& disk) {
  const WriteTarget target = write_target(path);
  if (!written_in_place(target, path, bytes, disk)) {
    const auto make_like = [&](int fd) { return disk.give(FileAttributes(like), fd); };
    write_beside_and_rename(target.path, bytes, disk, make_like);
  }
}

void replace_file(const fs::path& path, std::string_view bytes, Disk& disk) {
  std::error_code failure;
  const fs::path file = fs::canonical(path, failure);
  struct stat status {};
  if (failure || ::stat(file.c_str(), &status) != 0) {
    throw system_error(ErrorCode::kInput, path.string(), "cannot be changed", failure ? failure.value() : errno);
  }
  const char* const hint = "write to another file";
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kInput, path.string(), kind_of(status.st_mode), "a file was expected");
  }
  // Also for root, who may write anything: the bits show the owner's intention.
  if ((status.st_mode & 0222) == 0 || ::faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) != 0) {
    throw Error(ErrorCode::kInput, path.string(), "is read-only", hint);
  }
  if (status.st_nlink > 1) {
    throw Error(ErrorCode::kInput, path.string(),
                fmt::format("has {} names (hard links), and only this one would be changed", status.st_nlink), hint);
  }
  write_beside_and_rename(file, bytes, disk, [&](int fd) {
    if (const int failure_to_give = disk.give(FileAttributes(file), fd); failure_to_give != 0) {
      return failure_to_give;
    }
    struct stat made {};
    return ::fstat(fd, &made) == 0 && made.st_uid == status.st_uid ? 0 : EPERM;
  });
}

void make_folders(const fs::path& path, Disk& disk) {
  if (const int failure = disk.make_folders(path); failure != 0) {
    throw system_error(ErrorCode::kIo, path.string(), "cannot be created", failure);
  }
}

void remove_tree(const fs::path& path) {
  std::error_code failure;
  fs::remove_all(path, failure);
  if (!failure) {
    return;
  }
  std::error_code ignored;
  fs::permissions(path, fs::perms::owner_all, fs::perm_options::add | fs::perm_options::nofollow, ignored);
  for (fs::directory_iterator entry(path, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
      remove_tree(entry->path());
    }
  }
  fs::remove_all(path, ignored);
}

TemporaryFolder::TemporaryFolder(std::string_view prefix) {
  std::string pattern = fmt::format("{}/{}-XXXXXX", fs::temp_directory_path().string(), prefix);
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw system_error(ErrorCode::kIo, pattern, "cannot be created", errno);
  }
  path_ = pattern;
  lock_ = UniqueFd(::open(pattern.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_) {
    ::flock(lock_.get(), LOCK_SH | LOCK_NB);
  }
}

void TemporaryFolder::sweep(std::string_view prefix) {
  constexpr std::time_t kYoungest_s = 60;  // a younger folder may not be locked yet
  const std::string start = std::string(prefix) + "-";
  std::error_code failure;
  for (fs::directory_iterator entry(fs::temp_directory_path(failure), failure), end; !failure && entry != end;
       entry.increment(failure)) {
    if (!entry->path().filename().string().starts_with(start)) {
      continue;
    }
    const UniqueFd folder(::open(entry->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (folder && ::fstat(folder.get(), &status) == 0 && status.st_uid == ::geteuid() &&
        ::time(nullptr) - status.st_mtime > kYoungest_s && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) {
      remove_tree(entry->path());
    }
  }
}

TemporaryFolder::~TemporaryFolder() { remove_tree(path_); }

fs::path host_root() {
  const char* root = std::getenv("UNIDLE_HOST_ROOT");
  return root != nullptr && *root != '\0' ? fs::path(root) : fs::path("/");
}

fs::path home_folder() {
  const char* home = std::getenv("UNIDLE_HOME");
  return home != nullptr && *home != '\0' ? fs::path(home) : fs::path(".unidle");
}

fs::path program_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

}  // namespace unidle
