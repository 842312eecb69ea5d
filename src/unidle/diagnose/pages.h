// The rules as documentation.
#pragma once

#include <string>
#include <string_view>

#include "unidle/language/language.h"

namespace unidle::diagnose {

/// One rule for a terminal of `width` columns. Throws kUsage (subject: the id) when there is no such rule.
std::string explain(std::string_view id, int width, Language language = Language::kEnglish);

/// docs/rules.md, whole.
std::string rules_markdown();

}  // namespace unidle::diagnose
