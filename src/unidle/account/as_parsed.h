// Configured settings, corrected by what the program's argument parser returned.
#pragma once

#include <vector>

#include "unidle/record/record.h"

namespace unidle::account {

/// Returns `settings` with configured values replaced by what the program's own parser returned, as `notes` of type
/// "arguments" report it. A setting of source "argument" names the argument of a knob (its location) and the origin of
/// the knob's value (its value):
///
/// - "default" of an argument, or a "word" of the command: the parser's result is the configured value. Without a note
///   about that argument, a word counts as written; a default counts only if the program noted no arguments at all.
/// - "file": a parser that returned something else either overrode the file or was not used by the program; the knob is
///   left out. Without a note about that argument, the file's value counts.
///
/// A knob is also left out when the program changed the argument after parsing, or when its value was not noted: the
/// effective value then does not show what was configured. Settings of other sources are unchanged; those of source
/// "argument" are removed.
std::vector<record::Setting> as_parsed(std::vector<record::Setting> settings, const std::vector<record::Note>& notes);

}  // namespace unidle::account
