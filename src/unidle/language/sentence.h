// Translates finished sentences, such as those of a stored result.
#pragma once

#include <string>
#include <string_view>

#include "unidle/language/language.h"

namespace unidle {

/// Translates English text of which only the result is known: finds the message of the catalogue that it was made from,
/// by its words, and puts the text's values into the translation. Sentences joined by "; " are translated one by one;
/// so are those after "NAME: ", and values that are sentences. A message needs two words to be recognised, because
/// "{} of {}" would match anything. Text that no message explains stays as it is. Thread-safe.
std::string translate_sentence(Language language, std::string_view english);

}  // namespace unidle
