// Folders of prepared data that are there whole or not at all.
#pragma once

#include <filesystem>
#include <functional>

namespace unidle::workloads {

/// Calls `make` with a new empty folder beside `folder`, and puts that in the place of `folder` when it returns. An
/// older one goes only when the new one is whole; when anything throws, nothing is left behind. Throws kUsage when
/// there is something in `folder` that was not made here, kIo naming `folder` for what the file system refuses.
void make_whole_folder(const std::filesystem::path& folder,
                       const std::function<void(const std::filesystem::path& made)>& make);

}  // namespace unidle::workloads
