#include "unidle/base/file_attributes.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace unidle {

namespace {

/// With an access list, the group bits of the mode hold its mask, not the group's permissions.
constexpr std::string_view kAccessList = "system.posix_acl_access";

std::vector<std::string> names_of(const char* path) {
  std::string list(static_cast<std::size_t>(std::max<ssize_t>(0, ::listxattr(path, nullptr, 0))), '\0');
  list.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::listxattr(path, list.data(), list.size()))));
  std::vector<std::string> names;
  for (std::size_t at = 0; at < list.size(); at = list.find('\0', at) + 1) {
    names.emplace_back(list.c_str() + at);
  }
  return names;
}

}  // namespace

FileAttributes::FileAttributes(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return;
  }
  known_ = true;
  mode_ = status.st_mode & 0777;  // set-user-id and similar bits are useless in a copy
  owner_ = status.st_uid;
  group_ = status.st_gid;
  for (const std::string& name : names_of(path.c_str())) {
    const ssize_t size = ::getxattr(path.c_str(), name.c_str(), nullptr, 0);
    std::string value(static_cast<std::size_t>(std::max<ssize_t>(0, size)), '\0');
    if (::getxattr(path.c_str(), name.c_str(), value.data(), value.size()) == size) {
      extended_.emplace_back(name, std::move(value));
    }
  }
}

bool FileAttributes::give_to(int fd) const {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return false;
  }
  const bool same_owner = !known_ || status.st_uid == owner_ || ::fchown(fd, owner_, static_cast<gid_t>(-1)) == 0;
  const bool same_group = !known_ || status.st_gid == group_ || ::fchown(fd, static_cast<uid_t>(-1), group_) == 0;
  mode_t mode = mode_;
  if (!same_group) {
    mode = (mode & 0707) | (mode & ((mode & 07) << 3));
  }
  if (!same_owner) {
    mode |= S_IRUSR | S_IWUSR;  // this user owns the copy
  }
  if (::fchmod(fd, mode) != 0) {
    return false;
  }
  for (const auto& [name, value] : extended_) {
    // An access list refers to the file's own group; with another group its meaning would change.
    if (same_group || name != kAccessList) {
      ::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0);  // only the system may set some of them
    }
  }
  return true;
}

}  // namespace unidle
