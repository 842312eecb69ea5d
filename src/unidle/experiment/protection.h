// How trials are kept from changing the user's files, best first.
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
  kLayers,     // all writes of a trial go to layers over the file system, which are deleted afterwards
  kWriteLock,  // in a copy of the working folder; the kernel refuses writes elsewhere
  kCopy,       // in a copy of the working folder; nothing prevents writes elsewhere
  kInPlace,    // in the working folder itself, for programs that work nowhere else
};

std::string_view to_string(Protection protection);
std::optional<Protection> protection_named(std::string_view name);
/// What protects the user's files, in words.
std::string_view in_words(Protection protection);
/// True when the kernel enforces it.
bool is_enforced(Protection protection);
/// True when what trials write does not reach the working folder.
bool is_isolated(Protection protection);

struct ProtectionOptions {
  /// The ways that this machine offers, best first: those that the kernel enforces, or, without any, the others, ending
  /// with kInPlace.
  std::vector<Protection> ways;
  std::string lacking;     // why better ways are missing, in words; may be empty
  bool asked_for = false;  // chosen by UNIDLE_PROTECTION
};

/// The ways for trials of `command` in `folder`, tested in `scratch`. UNIDLE_PROTECTION selects one.
ProtectionOptions ways_to_protect(const std::filesystem::path& folder, const std::vector<std::string>& command,
                                  const std::filesystem::path& scratch);

/// Throws kUsage when the kernel would not stop trials from writing and the user has not allowed that; warns when the
/// user has.
void need_permission(const ProtectionOptions& found, Protection protection, bool may_write);

/// Sets folder, environment and sandbox of a trial. `own`: the trial's own folder, created if missing. Experiment
/// trackers are muted in all cases. Throws kIo.
void protect(observe::Options& run, Protection protection, const std::filesystem::path& folder,
             const std::vector<std::string>& command, const std::filesystem::path& own);

/// A file of the program with other contents.
struct EditedFile {
  std::filesystem::path file;  // relative to the working folder
  std::string text;
};

/// Shows edited files to a trial that protect() has prepared; the user's own stay as they are. REQUIRES:
/// is_isolated(protection). Throws kIo, and kInput where a copy's file is not what the trial would read: a link leads
/// out of the copy, or the command or PYTHONPATH names `folder`.
void edit_for_trial(observe::Options& run, Protection protection, const std::filesystem::path& folder,
                    const std::filesystem::path& own, const std::vector<EditedFile>& edited);

}  // namespace unidle::experiment
