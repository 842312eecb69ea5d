// Resolves the name of a file to write, and its permissions.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "unidle/base/handle.h"

namespace unidle {

/// Only regular files are ever replaced.
struct WriteTarget {
  std::filesystem::path path;  // after following links, even to a file that does not exist yet
  bool in_place = false;       // a device, a FIFO, or an open stream (/dev/stdout): append to it
};

/// Opens and changes nothing. Folders are reported when the path is opened.
WriteTarget write_target(const std::filesystem::path& path);

/// Opens a target to be written in place; invalid, with errno set, when it cannot be opened. Waits for the reader of a
/// FIFO.
UniqueFd open_in_place(const WriteTarget& target);

/// The permissions of a newly created file: what the umask leaves.
mode_t usual_mode();

}  // namespace unidle
