// Documentation pages generated from the rules.
#pragma once

#include <string>
#include <string_view>

#include "unidle/language/language.h"

namespace unidle::diagnose {

/// One rule as text for a terminal of `width` columns. Throws kUsage (subject: the id) when the rule does not exist.
std::string explain(std::string_view id, int width, Language language = Language::kEnglish);

/// The complete docs/rules.md.
std::string rules_markdown();

}  // namespace unidle::diagnose
