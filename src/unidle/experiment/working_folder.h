// Copies the working folder for trials, so that what they write can be deleted.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace unidle::experiment {

/// True for a script or configuration, by its extension, of up to 1 MiB; false when it cannot be read.
bool is_program_text(const std::filesystem::directory_entry& entry);

/// Names of siblings of `folder` that a word of `command`, or a script or configuration in the folder, refers to as
/// ../NAME.
std::set<std::string> named_siblings(const std::filesystem::path& folder, const std::vector<std::string>& command);

/// Where `command` probably writes: `folder`, the home folder, paths that the command, the environment or the folder's
/// scripts and configurations name, and the targets of its links.
std::vector<std::filesystem::path> places_of(const std::filesystem::path& folder,
                                             const std::vector<std::string>& command);

/// Why trials of `command` cannot run in copies of `folder`; nothing when they can. They can when the folder is small
/// (256 MiB, 5,000 files: a copy takes about a second), no relative link leads out of it, and the command refers to
/// nothing outside except its siblings.
std::optional<std::string> why_not_copied(const std::filesystem::path& folder, const std::vector<std::string>& command);

/// Copies the content of `from`, without records of runs, to `to`, which must not exist. Links stay links. Skips
/// sockets, pipes and devices. Throws kIo.
void copy_folder(const std::filesystem::path& from, const std::filesystem::path& to);

/// Copies `from` into `to` under its own name, and links its named_siblings beside it. Returns the copy's path. Throws
/// kIo.
std::filesystem::path copy_for_trial(const std::filesystem::path& from, const std::vector<std::string>& command,
                                     const std::filesystem::path& to);

}  // namespace unidle::experiment
