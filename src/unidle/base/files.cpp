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

#include "unidle/base/error.h"
#include "unidle/base/write_target.h"

namespace unidle {

namespace fs = std::filesystem;

namespace {

/// errno of the failure, or 0.
int read_all(const fs::path& path, std::string& out) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return errno;
  }
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got > 0) {
      out.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0) {
      return 0;
    } else if (errno != EINTR) {
      return errno;
    }
  }
}

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// A rename is only durable once its folder is; a folder that cannot be synced is no error.
void sync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) {
    ::fsync(fd.get());
  }
}

}  // namespace

std::string read_file(const fs::path& path) {
  std::string bytes;
  if (const int failure = read_all(path, bytes)) {
    throw system_error(ErrorCode::kInput, path.string(), "cannot be read", failure);
  }
  return bytes;
}

std::optional<std::string> try_read_file(const fs::path& path) {
  std::string bytes;
  if (read_all(path, bytes) != 0) {
    return std::nullopt;
  }
  return bytes;
}

void write_file_atomic(const fs::path& name, std::string_view bytes) {
  const WriteTarget target = write_target(name);
  if (target.in_place) {
    const UniqueFd fd = open_in_place(target);
    if (const int failure = fd ? write_all(fd.get(), bytes) : errno; failure != 0) {
      throw system_error(ErrorCode::kIo, name.string(), "cannot be written", failure);
    }
    return;
  }
  const fs::path& path = target.path;
  std::string temporary = path.string() + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) {
    throw system_error(ErrorCode::kIo, path.string(), "cannot be written", errno);
  }
  // mkostemp makes private files; a result should have the permissions any new file would.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd.get(), 0666 & ~mask);
  int failure = write_all(fd.get(), bytes);
  if (failure == 0 && ::fsync(fd.get()) != 0) {
    failure = errno;
  }
  fd.reset();
  if (failure == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) {
    failure = errno;
  }
  if (failure != 0) {
    ::unlink(temporary.c_str());
    throw system_error(ErrorCode::kIo, path.string(), "cannot be written", failure);
  }
  sync_folder(path.parent_path());
}

void make_folders(const fs::path& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) {
    throw system_error(ErrorCode::kIo, path.string(), "cannot be created", failure.value());
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
  constexpr std::time_t kYoungest_s = 60;  // one that was just made may not be locked yet
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
