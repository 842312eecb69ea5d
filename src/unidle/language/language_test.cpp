#include "unidle/language/language.h"

#include <fmt/args.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "unidle/language/po.h"

namespace unidle {
namespace {

using ::testing::HasSubstr;

Catalogue chinese() { return read_po(zh_CN_po(), "po/zh_CN.po"); }

TEST(Language, OfALocale) {
  for (const char* chinese : {"zh", "zh_CN.UTF-8", "zh-Hans", "zh_TW", "zh.utf8"}) {
    EXPECT_EQ(language_of(chinese), Language::kChinese) << chinese;
  }
  for (const char* other : {"", "C", "en_US.UTF-8", "zha", "de"}) {
    EXPECT_EQ(language_of(other), Language::kEnglish) << other;
  }
}

/// The language that this environment chooses; other variables of the locale are not set.
Language chosen_in(const std::map<std::string, std::string>& variables) {
  std::map<std::string, std::optional<std::string>> before;
  for (const char* name : {"LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* value = std::getenv(name);
    before[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
    const auto given = variables.find(name);
    given == variables.end() ? ::unsetenv(name) : ::setenv(name, given->second.c_str(), 1);
  }
  const Language chosen = language_of_environment();
  for (const auto& [name, value] : before) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  return chosen;
}

TEST(Language, OfTheEnvironment) {
  const std::map<std::string, std::string> chinese[] = {
      {{"LANG", "zh_CN.UTF-8"}},
      {{"LC_MESSAGES", "zh_CN"}, {"LANG", "en_US.UTF-8"}},
      {{"LC_ALL", ""}, {"LANG", "zh_CN.UTF-8"}},
      {{"LANGUAGE", "zh_CN"}, {"LC_ALL", "en_US.UTF-8"}},
      {{"LANGUAGE", "zh"}, {"LANG", "de_DE.UTF-8"}},
      {{"LANGUAGE", "de:fr::zh_CN:en"}, {"LANG", "de_DE.UTF-8"}},
      {{"LANGUAGE", "de:fr"}, {"LANG", "zh_CN.UTF-8"}},
      {{"LANGUAGE", ""}, {"LANG", "zh_CN.UTF-8"}},
  };
  for (const auto& variables : chinese) {
    EXPECT_EQ(chosen_in(variables), Language::kChinese) << ::testing::PrintToString(variables);
  }
  const std::map<std::string, std::string> english[] = {
      {},
      {{"LANGUAGE", "zh_CN"}},
      {{"LANGUAGE", "zh_CN"}, {"LC_ALL", "C"}},
      {{"LANGUAGE", "zh_CN"}, {"LC_ALL", "C.UTF-8"}, {"LANG", "zh_CN.UTF-8"}},
      {{"LANGUAGE", "zh_CN"}, {"LC_MESSAGES", "POSIX"}, {"LANG", "zh_CN.UTF-8"}},
      {{"LC_ALL", "en_GB.UTF-8"}, {"LANG", "zh_CN.UTF-8"}},
      {{"LANGUAGE", "en_US:en"}, {"LANG", "zh_CN.UTF-8"}},
      {{"LANGUAGE", "en:zh_CN"}, {"LANG", "zh_CN.UTF-8"}},
      {{"LANGUAGE", "C"}, {"LANG", "zh_CN.UTF-8"}},
  };
  for (const auto& variables : english) {
    EXPECT_EQ(chosen_in(variables), Language::kEnglish) << ::testing::PrintToString(variables);
  }
}

TEST(Language, AMessageWithoutTranslationStaysEnglish) {
  EXPECT_EQ(translate(Language::kChinese, "no such message {}"), "no such message {}");
  EXPECT_EQ(translate(Language::kEnglish, "set {} to {}", "a", 1), "set a to 1");
  EXPECT_EQ(translate(Language::kChinese, "set {} to {}", "a", 1), "把 a 设为 1");
}

/// The placeholders of a message, by position.
std::multiset<std::string> placeholders(std::string_view text) {
  std::multiset<std::string> found;
  int next = 0;
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const std::string inside(text.substr(at + 1, text.find('}', at) - at - 1));
    const auto colon = inside.find(':');
    const std::string position = inside.substr(0, colon);
    found.insert((position.empty() ? std::to_string(next++) : position) +
                 (colon == std::string::npos ? "" : inside.substr(colon)));
  }
  return found;
}

TEST(Language, TranslationsTakeTheSameArguments) {
  std::set<std::string_view> seen;
  for (const auto& [english, chinese] : chinese()) {
    EXPECT_EQ(placeholders(english), placeholders(chinese)) << english;
    EXPECT_TRUE(seen.insert(english).second) << english;
    EXPECT_FALSE(chinese.empty()) << english;
  }
}

/// Arguments of the types that the message expects, each recognisable in the result.
fmt::dynamic_format_arg_store<fmt::format_context> arguments_of(std::string_view english,
                                                                std::vector<std::string>& expected) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (std::size_t at = english.find('{'); at != std::string_view::npos; at = english.find('{', at + 1)) {
    const std::string spec(english.substr(at, english.find('}', at) - at + 1));
    if (const std::string name = spec.substr(1, spec.size() - 2); !name.empty() && std::isalpha(name[0]) != 0) {
      expected.push_back(fmt::format("<{}>", name));
      store.push_back(fmt::arg(name.c_str(), expected.back()));
    } else if (spec == "{}") {
      expected.push_back(fmt::format("<{}>", expected.size()));
      store.push_back(expected.back());
    } else {
      const double number = 100.0 + static_cast<double>(expected.size());
      expected.push_back(fmt::format(fmt::runtime(spec), number));
      store.push_back(number);
    }
  }
  return store;
}

TEST(Language, EveryTranslationTakesItsArguments) {
  for (const auto& [english, chinese] : chinese()) {
    std::vector<std::string> expected;
    const auto arguments = arguments_of(english, expected);
    std::string said;
    // Not translate(): its fallback to English would hide the fault.
    EXPECT_NO_THROW(said = fmt::vformat(fmt::string_view(chinese.data(), chinese.size()), arguments)) << chinese;
    for (const std::string& argument : expected) {
      EXPECT_THAT(said, HasSubstr(argument)) << english;
    }
  }
}

TEST(Language, ATranslationThatDoesNotTakeItsArgumentsIsSaidInEnglish) {
  const auto said = [](std::string_view translated) {
    const int many = 3;
    const std::string what = "steps";
    return format_message(translated, "{} of {}", fmt::make_format_args(many, what));
  };
  EXPECT_EQ(said("{1}：{0}"), "steps：3");
  for (const char* bad : {"{}：{0}", "{0}：{7}", "{0:.1f}：{1:d}", "{0", "{what}"}) {
    EXPECT_EQ(said(bad), "3 of steps") << bad;
  }
}

TEST(Language, AFactorIsWhatItBecomesNotWhatIsAdded) {
  for (const auto& [english, chinese] : chinese()) {
    for (const char* misread : {"最多快", "约快", "快 {"}) {  // many read "1.3 times faster" as 2.3 times
      EXPECT_EQ(chinese.find(misread), std::string_view::npos) << chinese;
    }
  }
}

}  // namespace
}  // namespace unidle
