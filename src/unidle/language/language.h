// The language of a program's output. Messages in the sources are English; other languages translate whole messages,
// looked up by their English text (po/), so that a rule's words stay in the rule.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace unidle {

enum class Language { kEnglish, kChinese };

/// "zh", "zh_CN.UTF-8", "zh-Hans" -> kChinese; everything else is English.
Language language_of(std::string_view locale);
/// The language of the environment, as GNU gettext chooses it: LANGUAGE comes first, unless the locale (the first of
/// LC_ALL, LC_MESSAGES and LANG that is not empty) is "C". README.md says where this differs from gettext.
Language language_of_environment();

/// The message in `language`, or `english` without a translation. REQUIRES: `english` outlives the result.
std::string_view translate(Language language, std::string_view english);

/// Formats `translated` with the arguments, or `english` if `translated` does not accept them.
std::string format_message(std::string_view translated, std::string_view english, fmt::format_args args);

/// Formats a message in `language`. Translations may refer to arguments by position ({1}), but then to all of them: fmt
/// does not allow both ways in one string.
template <typename... Args>
std::string translate(Language language, fmt::format_string<Args...> english, Args&&... args) {
  const fmt::string_view text = english;
  const std::string_view message(text.data(), text.size());
  return format_message(translate(language, message), message, fmt::make_format_args(args...));
}

}  // namespace unidle
