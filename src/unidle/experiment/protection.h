// How trials are kept from the user's files, the best first.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/observe/observe.h"

namespace unidle::experiment {

/// Names are part of the output and of stored searches.
enum class Protection {
  kLayers,     // all that a trial writes goes to layers over the file system, which are thrown away
  kWriteLock,  // in a copy of the working folder; the kernel refuses to write elsewhere
  kCopy,       // in a copy of the working folder; nothing keeps the program from writing elsewhere
  kInPlace,    // in the working folder itself, for programs that do not work elsewhere
};

std::string_view to_string(Protection protection);
std::optional<Protection> protection_named(std::string_view name);
/// For people: what protects their files.
std::string_view in_words(Protection protection);
/// The kernel sees to it.
bool is_certain(Protection protection);
/// Trials do not run in the working folder itself.
bool is_apart(Protection protection);

struct Ways {
  /// That this machine offers, the best first: certain ones, or where it has none the others, the last kInPlace.
  std::vector<Protection> ways;
  std::string lacking;     // why those before the first are not there, in words; may be empty
  bool asked_for = false;  // named by UNIDLE_PROTECTION
};

/// For trials of `command` in `folder`, tried out in `scratch`. UNIDLE_PROTECTION names one to be taken.
Ways ways_to_protect(const std::filesystem::path& folder, const std::vector<std::string>& command,
                     const std::filesystem::path& scratch);

/// Throws kUsage where the kernel would keep trials from nothing and nobody has allowed that; warns where somebody has.
void need_permission(const Ways& found, Protection protection, bool may_write);

/// Folder, environment and sandbox of a trial whose own folder, which must exist, is `own`. Trackers of experiments are
/// muted in each of them. Throws kIo.
void protect(observe::Options& run, Protection protection, const std::filesystem::path& folder,
             const std::vector<std::string>& command, const std::filesystem::path& own);

}  // namespace unidle::experiment
