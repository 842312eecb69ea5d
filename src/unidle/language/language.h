// The language that a program speaks. Messages are English in the sources; other languages translate whole messages by
// their English text (po/), so that what a rule says stays in the rule.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace unidle {

enum class Language { kEnglish, kChinese };

/// "zh", "zh_CN.UTF-8", "zh-Hans" -> kChinese; everything else is English.
Language language_of(std::string_view locale);
/// By the environment as gettext does: LC_ALL, then LC_MESSAGES, then LANG; the first that is set and not empty.
Language language_of_environment();

/// The message in `language`; `english` itself where there is no translation. REQUIRES: `english` outlives the result.
std::string_view translate(Language language, std::string_view english);

/// `translated` with the arguments put in; `english` where that does not take them.
std::string format_message(std::string_view translated, std::string_view english, fmt::format_args args);

/// A message in `language` with its arguments put in. Translations may place arguments by position, as {1}, then all of
/// them: fmt mixes no two ways.
template <typename... Args>
std::string translate(Language language, fmt::format_string<Args...> english, Args&&... args) {
  const fmt::string_view text = english;
  const std::string_view message(text.data(), text.size());
  return format_message(translate(language, message), message, fmt::make_format_args(args...));
}

}  // namespace unidle
