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
///   about that argument, a word counts as written, and so does a default that no word can have overridden.
/// - "file": if the parser returned something else, it overrode the file or was not called; the knob is left out.
///
/// A knob is also left out when the program changed the argument after parsing, or when its value was not noted: the
/// effective value then does not show what was configured. Settings of other sources are unchanged; those of source
/// "argument" are removed.
std::vector<record::Setting> as_parsed(std::vector<record::Setting> settings, const std::vector<record::Note>& notes);

}  // namespace unidle::account
