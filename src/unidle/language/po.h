// Catalogues of translations in gettext's format.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unidle {

/// Messages and their translations, in the order of the file.
using Catalogue = std::vector<std::pair<std::string, std::string>>;

/// Parses a catalogue. Skips entries that are untranslated or fuzzy, as msgfmt does. Does not support plurals or
/// contexts. Throws kInput (subject: NAME:LINE) when the text is not in the format.
Catalogue read_po(std::string_view text, std::string_view name);

/// The text of po/zh_CN.po, embedded at build time.
std::string_view zh_CN_po();

}  // namespace unidle
