#include "unidle/base/write_target.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <system_error>

namespace unidle {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLinks = 40;  // the kernel's limit

/// The kernel's names for open files: the target of such a link is not a name to write to.
bool is_of_kernel(const fs::path& path) {
  const fs::path top = *std::next(path.begin(), std::min<std::ptrdiff_t>(1, std::distance(path.begin(), path.end())));
  return path.is_absolute() && (top == "dev" || top == "proc");
}

bool is_link(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

}  // namespace

WriteTarget write_target(const fs::path& path) {
  WriteTarget target{path};
  for (int links = 0; links < kMostLinks && is_link(target.path); ++links) {
    if (is_of_kernel(target.path)) {
      target.in_place = true;
      return target;
    }
    std::error_code failure;
    const fs::path to = fs::read_symlink(target.path, failure);
    target.path = to.is_absolute() ? to : target.path.parent_path() / to;
  }
  struct stat status {};
  target.in_place = ::stat(target.path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
  return target;
}

UniqueFd open_in_place(const WriteTarget& target) {
  std::fflush(stdout);  // it may write to the same file
  return UniqueFd(::open(target.path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY));
}

mode_t usual_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace unidle
