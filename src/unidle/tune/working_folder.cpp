#include "unidle/tune/working_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kLargestCopy = 256ULL << 20;
constexpr int kMostFiles = 5000;

bool leads_out(const fs::path& path) { return std::find(path.begin(), path.end(), "..") != path.end(); }

/// Records of earlier runs are nothing that a program reads, and may be large.
bool is_record(const fs::path& entry) { return entry.filename() == ".unidle"; }

}  // namespace

std::optional<std::string> why_not_copied(const fs::path& folder, const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    if (leads_out(word)) {
      return fmt::format("{} leads out of the working folder", word);
    }
  }
  std::uintmax_t bytes = 0;
  int files = 0;
  try {
    for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
      if (entry->is_directory() && !entry->is_symlink() && is_record(entry->path())) {
        entry.disable_recursion_pending();
      } else if (entry->is_symlink()) {
        if (const fs::path target = fs::read_symlink(entry->path()); target.is_relative() && leads_out(target)) {
          return fmt::format("the link {} leads out of its folder", entry->path().string());
        }
      } else if (entry->is_regular_file()) {
        bytes += entry->file_size();
      }
      if (++files > kMostFiles || bytes > kLargestCopy) {
        return "the working folder is too large to be copied for every trial";
      }
    }
  } catch (const fs::filesystem_error& failure) {
    return std::string("the working folder cannot be read as a whole: ") + failure.code().message();
  }
  return std::nullopt;
}

void copy_folder(const fs::path& from, const fs::path& to) {
  make_folders(to);
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
      const fs::path target = to / entry.path().filename();
      if (entry.is_symlink()) {
        fs::copy_symlink(entry.path(), target);
      } else if (entry.is_directory()) {
        if (!is_record(entry.path())) {
          copy_folder(entry.path(), target);
        }
      } else if (entry.is_regular_file()) {
        fs::copy_file(entry.path(), target);
        fs::last_write_time(target, entry.last_write_time());  // programs compare ages
      }
    }
  } catch (const fs::filesystem_error& failure) {
    throw Error(ErrorCode::kIo, from.string(), "cannot be copied for a trial: " + failure.code().message());
  }
}

}  // namespace unidle::tune
