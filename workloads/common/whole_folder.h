// Folders of prepared data that appear atomically.
#pragma once

#include <filesystem>
#include <functional>

namespace unidle::workloads {

/// Calls `make` with a new empty folder beside `folder`, and replaces `folder` with it when that returns. An older
/// folder is removed only when the new one is complete; when anything throws, nothing is left behind. Throws kUsage
/// when `folder` has contents that were not made here, kIo naming `folder` on errors of the file system.
void make_whole_folder(const std::filesystem::path& folder,
                       const std::function<void(const std::filesystem::path& made)>& make);

}  // namespace unidle::workloads
