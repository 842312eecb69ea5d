#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "unidle/record/detail/access.h"

namespace unidle::record {

namespace {

bool is_private() {
  const char* shared = std::getenv("UNIDLE_SHARED_RECORDS");
  return shared == nullptr || *shared == '\0';
}

}  // namespace

mode_t file_mode() { return is_private() ? 0600 : 0666; }

bool make_record_folder(const std::filesystem::path& folder, std::error_code& failure) {
  failure.clear();
  if (::mkdir(folder.c_str(), is_private() ? 0700 : 0777) == 0) {
    return true;
  }
  if (errno != EEXIST) {
    failure = std::error_code(errno, std::generic_category());
  }
  return false;
}

}  // namespace unidle::record
