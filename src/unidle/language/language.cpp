#include "unidle/language/language.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <unordered_map>

#include "unidle/language/po.h"

namespace unidle {

Language language_of(std::string_view locale) {
  const bool chinese = locale.starts_with("zh") && (locale.size() == 2 || locale[2] == '_' || locale[2] == '-' ||
                                                    locale[2] == '.' || locale[2] == '@');
  return chinese ? Language::kChinese : Language::kEnglish;
}

namespace {

/// The value of an environment variable; empty when it is not set.
std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

/// The locale of messages. Empty when none is set, which is the locale "C".
std::string_view locale_of_messages() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    if (const std::string_view value = variable(name); !value.empty()) {
      return value;
    }
  }
  return {};
}

/// "C", "POSIX" and "C.UTF-8", in which programs say their own words.
bool is_c_locale(std::string_view locale) {
  const std::string_view name = locale.substr(0, locale.find('.'));
  return name.empty() || name == "C" || name == "POSIX";
}

bool is_english(std::string_view locale) {
  return is_c_locale(locale) || locale == "en" || locale.starts_with("en_") || locale.starts_with("en-") ||
         locale.starts_with("en.") || locale.starts_with("en@");
}

}  // namespace

Language language_of_environment() {
  const std::string_view locale = locale_of_messages();
  if (is_c_locale(locale)) {
    return Language::kEnglish;
  }
  for (std::string_view rest = variable("LANGUAGE"); !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view each = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!each.empty() && (is_english(each) || language_of(each) != Language::kEnglish)) {
      return language_of(each);
    }
  }
  return language_of(locale);
}

std::string_view translate(Language language, std::string_view english) {
  if (language == Language::kEnglish) {
    return english;
  }
  static const Catalogue kCatalogue = read_po(zh_CN_po(), "po/zh_CN.po");
  static const std::unordered_map<std::string_view, std::string_view> kChinese(kCatalogue.begin(), kCatalogue.end());
  const auto found = kChinese.find(english);
  return found == kChinese.end() ? english : found->second;
}

std::string format_message(std::string_view translated, std::string_view english, fmt::format_args args) {
  const auto put_in = [&](std::string_view text) {
    return fmt::vformat(fmt::string_view(text.data(), text.size()), args);
  };
  try {
    return put_in(translated);
  } catch (const fmt::format_error&) {
    return put_in(english);  // a bad translation must not cost the answer
  }
}

}  // namespace unidle
