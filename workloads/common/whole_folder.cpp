#include "workloads/common/whole_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::workloads {

namespace {

namespace fs = std::filesystem;

/// Every folder made here contains this file; a folder without it is not ours, and is never replaced.
constexpr const char* kMark = ".prepared";

/// Resolves links and drops a trailing slash.
fs::path place_of(const fs::path& given) {
  const fs::path folder = fs::weakly_canonical(fs::absolute(given)).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

void check_may_be_replaced(const fs::path& folder) {
  const fs::file_status status = fs::status(folder);
  if (!fs::exists(status)) {
    return;
  }
  const bool ours = fs::is_directory(status) && (fs::is_empty(folder) || fs::exists(folder / kMark));
  if (!ours || folder == fs::current_path()) {
    throw Error(ErrorCode::kUsage, "data.folder " + folder.string(),
                ours ? "is the folder that you are in" : "holds what was not prepared by us, and would be replaced",
                "name another one, or remove it");
  }
}

void replace_folder(const fs::path& made, const fs::path& folder) {
  const fs::path old = fmt::format("{}.old-{}", folder.string(), ::getpid());
  if (fs::exists(folder)) {
    fs::rename(folder, old);
  }
  fs::rename(made, folder);
  std::error_code ignored;
  fs::remove_all(old, ignored);
}

}  // namespace

void make_whole_folder(const fs::path& given, const std::function<void(const fs::path& made)>& make) {
  const fs::path folder = place_of(given);
  check_may_be_replaced(folder);
  const fs::path made = fmt::format("{}.making-{}", folder.string(), ::getpid());
  std::error_code ignored;
  try {
    make_folders(made);
    make(made);
    write_file_atomic(made / kMark, "by unidle-train --prepare, which may replace this folder\n");
    check_may_be_replaced(folder);  // again: making it takes time
    replace_folder(made, folder);
  } catch (const fs::filesystem_error& failure) {
    fs::remove_all(made, ignored);
    throw Error(ErrorCode::kIo, folder.string(), failure.code().message());
  } catch (...) {
    fs::remove_all(made, ignored);
    throw;
  }
}

}  // namespace unidle::workloads
