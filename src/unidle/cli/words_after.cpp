#include "unidle/cli/words_after.h"

#include <algorithm>

#include "unidle/base/files.h"

namespace unidle::cli {

namespace {

/// The number of words after the first "--" of the command line.
std::size_t words_after_marker() {
  const std::string line = try_read_file("/proc/self/cmdline").value_or("");
  const std::string marker = std::string(1, '\0') + "--" + '\0';
  const std::size_t at = line.find(marker);
  return at == std::string::npos
             ? 0
             : static_cast<std::size_t>(
                   std::count(line.begin() + static_cast<std::ptrdiff_t>(at + marker.size()), line.end(), '\0'));
}

}  // namespace

void move_first_word(std::string& first, std::vector<std::string>& words) {
  if (!first.empty() && words_after_marker() == words.size() + 1) {
    words.insert(words.begin(), first);
    first.clear();
  }
}

}  // namespace unidle::cli
