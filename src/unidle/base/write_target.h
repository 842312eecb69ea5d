// What the name of a file to be written stands for.
#pragma once

#include <filesystem>

#include "unidle/base/handle.h"

namespace unidle {

/// Only plain files are ever replaced.
struct WriteTarget {
  std::filesystem::path path;  // links are followed, also to where nothing is yet
  bool in_place = false;       // a device, a pipe, or an open stream (/dev/stdout): written into, at the end
};

/// Nothing is opened or changed. Folders are left to whoever opens the path.
WriteTarget write_target(const std::filesystem::path& path);

/// Opens a target that is written in place; invalid (errno says why) when it cannot be. Waits for the reader of a pipe.
UniqueFd open_in_place(const WriteTarget& target);

}  // namespace unidle
