// What a file is besides its bytes.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace unidle {

/// Mode, owner, group, access list and extended attributes of one file. Not thread-safe.
class FileAttributes {
 public:
  /// Of what `path` leads to; private to this user when that cannot be told.
  explicit FileAttributes(const std::filesystem::path& path);

  /// Gives them to an open file, as far as this user may: where the group cannot be given, it gets no more than
  /// everybody has. False, with errno set, when even the mode cannot be set.
  bool give_to(int fd) const;

 private:
  mode_t mode_ = S_IRUSR | S_IWUSR;
  uid_t owner_ = 0;
  gid_t group_ = 0;
  bool known_ = false;
  std::vector<std::pair<std::string, std::string>> extended_;  // access lists are among them
};

}  // namespace unidle
