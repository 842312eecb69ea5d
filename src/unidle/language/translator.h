// Says messages in one language, for code that says many.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "unidle/language/language.h"

namespace unidle {

struct Translator {
  Language language = Language::kEnglish;

  template <typename... Args>
  std::string say(fmt::format_string<Args...> english, Args&&... args) const {
    return translate(language, english, std::forward<Args>(args)...);
  }
  /// A message that is looked up by name, or has no arguments.
  std::string word(std::string_view english) const { return std::string(translate(language, english)); }
};

}  // namespace unidle
