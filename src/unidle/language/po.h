// Catalogues of translations in gettext's format, as translators have them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unidle {

/// Messages and their translations, in the order of the file.
using Catalogue = std::vector<std::pair<std::string, std::string>>;

/// Entries without a translation and entries marked as fuzzy are left out, as msgfmt does. Reads no plurals and no
/// contexts. Throws kInput (subject: NAME:LINE) where the text is not in the format.
Catalogue read_po(std::string_view text, std::string_view name);

/// The text of po/zh_CN.po, embedded when the program was built.
std::string_view zh_CN_po();

}  // namespace unidle
