// Where trials of a program run: in a copy of its working folder, so that what they write is thrown away.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace unidle::experiment {

/// A script or a configuration, by its ending, of up to 1 MiB; one that cannot be read is none.
bool is_program_text(const std::filesystem::directory_entry& entry);

/// Names of what lies beside `folder` and is named as ../NAME by a word of `command` or in a script or configuration of
/// the folder itself.
std::set<std::string> named_siblings(const std::filesystem::path& folder, const std::vector<std::string>& command);

/// Where `command` is likely to write: `folder`, the home folder, paths that the command, the environment or the
/// folder's scripts and configurations name, and where its links lead.
std::vector<std::filesystem::path> places_of(const std::filesystem::path& folder,
                                             const std::vector<std::string>& command);

/// Why trials of `command` cannot run in copies of `folder`; nothing when they can. They can when the folder is small
/// (256 MiB, 5,000 files: a copy takes about a second), no relative link leads out of it, and the command further than
/// to what lies beside it.
std::optional<std::string> why_not_copied(const std::filesystem::path& folder, const std::vector<std::string>& command);

/// Copies `from` with its content, without records of runs, to `to`, which must not exist. Links stay links. Sockets,
/// pipes and devices are left out. Throws kIo.
void copy_folder(const std::filesystem::path& from, const std::filesystem::path& to);

/// Copies `from` into `to`, under its own name, with links to its named_siblings beside it. Returns the copy's path.
/// Throws kIo.
std::filesystem::path copy_for_trial(const std::filesystem::path& from, const std::vector<std::string>& command,
                                     const std::filesystem::path& to);

}  // namespace unidle::experiment
