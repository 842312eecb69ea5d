// What a program configured, where its parser of arguments had the last word.
#pragma once

#include <vector>

#include "unidle/record/record.h"

namespace unidle::account {

/// `settings` with configured values as the program's own parser returned them, which `notes` of type "arguments" tell.
/// A setting of source "argument" names the argument of a knob (its location) and what says the knob (its value):
///
/// - "default" of an argument, or a "word" of the command: what the parser returned is configured. Without a note about
///   that argument a word counts as it stands, and so does a default that no word can have overridden.
/// - "file": a parser that returned something else went before the file, or was not asked: that knob is left out.
///
/// A knob is left out as well where the program changed the argument after it was parsed, and where its value was not
/// noted: what is in effect then says nothing about what was configured. Settings of other sources stay as they are;
/// those of source "argument" are gone.
std::vector<record::Setting> as_parsed(std::vector<record::Setting> settings, const std::vector<record::Note>& notes);

}  // namespace unidle::account
