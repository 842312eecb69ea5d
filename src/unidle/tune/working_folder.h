// Where trials of a program run: in a copy of its working folder, so that what they write is thrown away.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace unidle::tune {

/// Why trials of `command` cannot run in copies of `folder`; nothing when they can. They can when the folder is small
/// (256 MiB, 5,000 files: a copy takes about a second) and neither the command nor a relative link leads out of it.
std::optional<std::string> why_not_copied(const std::filesystem::path& folder, const std::vector<std::string>& command);

/// Copies `from` with its content, without records of runs, to `to`, which must not exist. Links stay links. Sockets,
/// pipes and devices are left out. Throws kIo.
void copy_folder(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace unidle::tune
