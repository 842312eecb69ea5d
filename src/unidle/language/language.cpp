#include "unidle/language/language.h"

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

Language language_of_environment() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') {
      return language_of(value);
    }
  }
  return Language::kEnglish;
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
