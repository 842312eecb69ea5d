// The attributes of a file, apart from its bytes.
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
  /// The attributes of the file that `path` leads to; private to this user if they cannot be read.
  explicit FileAttributes(const std::filesystem::path& path);

  /// Applies them to an open file, as far as this user may. If the group cannot be set, it gets no more permissions
  /// than everybody. Returns false with errno if even the mode cannot be set.
  bool give_to(int fd) const;

 private:
  mode_t mode_ = S_IRUSR | S_IWUSR;
  uid_t owner_ = 0;
  gid_t group_ = 0;
  bool known_ = false;
  std::vector<std::pair<std::string, std::string>> extended_;  // includes access lists
};

}  // namespace unidle
