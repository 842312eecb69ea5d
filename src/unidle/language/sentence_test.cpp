#include "unidle/language/sentence.h"

#include <fmt/args.h>
#include <gtest/gtest.h>

#include <regex>

#include "unidle/language/po.h"

namespace unidle {
namespace {

std::string in_chinese(std::string_view english) { return translate_sentence(Language::kChinese, english); }

TEST(Sentence, IsTranslatedByTheMessageThatItWasMadeFrom) {
  EXPECT_EQ(in_chinese("set loader.workers to 4"), "把 loader.workers 设为 4");
  EXPECT_EQ(translate_sentence(Language::kEnglish, "set loader.workers to 4"), "set loader.workers to 4");
}

TEST(Sentence, OfNoMessageStaysAsItIs) {
  for (const char* text : {"", "RuntimeError: expected a tensor; found none", "end of file", "a: b", "3 of 4"}) {
    EXPECT_EQ(in_chinese(text), text);
  }
}

TEST(Sentence, JoinedWithOthersIsTranslatedByItself) {
  EXPECT_EQ(in_chinese("set a.b to 1; set c.d to 2"), "把 a.b 设为 1；把 c.d 设为 2");
  EXPECT_EQ(in_chinese("loader.workers=4; set a.b to 1"), "loader.workers=4；把 a.b 设为 1");
  EXPECT_EQ(in_chinese("set a.b to 1; a.b=1; set c.d to 2"), "把 a.b 设为 1；a.b=1；把 c.d 设为 2");
}

TEST(Sentence, MayFollowAName) {
  EXPECT_EQ(in_chinese("slow-rule: set a.b to 1"), "slow-rule：把 a.b 设为 1");
  EXPECT_EQ(in_chinese("slow-rule: no message of ours"), "slow-rule: no message of ours");
}

/// Values for an English message that tell which is which; numbers for formats of numbers.
fmt::dynamic_format_arg_store<fmt::format_context> values_for(const std::string& english) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  static const std::regex kPlaceholder(R"(\{(:[^{}]*)?\})");
  std::size_t number = 100;
  for (std::sregex_iterator at(english.begin(), english.end(), kPlaceholder), end; at != end; ++at, ++number) {
    const std::string format = (*at)[1];
    if (!format.empty() && std::string_view("fg").find(format.back()) != std::string_view::npos) {
      store.push_back(static_cast<double>(number));
    } else if (format.ends_with('d')) {
      store.push_back(number);
    } else {
      store.push_back(fmt::format("<{}>", number));
    }
  }
  return store;
}

TEST(Sentence, EachMessageWithTwoWordsIsRecognised) {
  static const std::regex kNamedOrAdjacent(R"(\{[a-z]|\}\{)");
  static const std::regex kTwoWords("[A-Za-z]{2,}[^A-Za-z].*[A-Za-z]{2,}|[A-Za-z]{2,}.*[^A-Za-z][A-Za-z]{2,}");
  static const std::regex kPlaceholder(R"(\{[^{}]*\})");
  for (const auto& [english, chinese] : read_po(zh_CN_po(), "po/zh_CN.po")) {
    const std::string words = std::regex_replace(english, kPlaceholder, "|");
    if (!std::regex_search(english, kNamedOrAdjacent) && std::regex_search(words, kTwoWords)) {
      const auto values = values_for(english);
      EXPECT_EQ(in_chinese(fmt::vformat(english, values)), fmt::vformat(chinese, values)) << english;
    }
  }
}

}  // namespace
}  // namespace unidle
