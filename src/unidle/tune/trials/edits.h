// Edits of the program's own lines, or of a word of its command, for settings that unidle changes in no other way.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/experiment/protection.h"
#include "unidle/knobs/change.h"
#include "unidle/knobs/changed_lines.h"
#include "unidle/knobs/reach.h"
#include "unidle/knobs/settings.h"

namespace unidle::tune {

/// The lines of one file, or the word of the command, that set a knob to a value.
struct Edit {
  knobs::Value to;
  std::string words;  // the change in a few words
  std::string file;   // relative to the working folder; empty for a word
  std::vector<knobs::ChangedLines> lines;
  std::optional<knobs::ChangedWord> word = {};  // of the command

  std::string where() const;  // file:line of the first; empty for a word
};

using Edits = std::map<std::string, Edit>;  // by knob

/// The edits that the fixes of a diagnosis show, as lines before and after, as a patch or as a word of the command:
/// those of files in the working folder, for settings that `program` takes in no other way.
Edits edits_of(const diagnose::Diagnosis& diagnosis, const knobs::ProgramCommand& program);

/// Those of the command alone, which need no copy of the program's files.
Edits without_lines(Edits edits);

/// Whether an edit adds an import of the package unidle.
bool needs_package(const Edit& edit);

/// The settings among `changes` that an edit makes.
knobs::Settings edited_part(const Edits& edits, const knobs::Settings& changes);
/// The settings among `changes` that no edit makes.
knobs::Settings unedited_part(const Edits& edits, const knobs::Settings& changes);

/// The command with the words that make `changes`.
std::vector<std::string> edited_command(const Edits& edits, const knobs::Settings& changes,
                                        std::vector<std::string> command);

/// The files below `folder` with the edits that make `changes`. Throws kInput when a file no longer has the old lines,
/// or when two edits change the same lines.
std::vector<experiment::EditedFile> edited_files(const Edits& edits, const knobs::Settings& changes,
                                                 const std::filesystem::path& folder);

}  // namespace unidle::tune
