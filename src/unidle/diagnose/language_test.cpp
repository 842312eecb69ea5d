#include "unidle/diagnose/language.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/rule.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::HasSubstr;

/// True when a character of the main block of Chinese characters is in it (U+4000 to U+9FFF).
bool has_chinese(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c >= 0xE4 && c <= 0xE9; });
}

TEST(Language, OfALocale) {
  for (const char* chinese : {"zh", "zh_CN.UTF-8", "zh-Hans", "zh_TW", "zh.utf8"}) {
    EXPECT_EQ(language_of(chinese), Language::kChinese) << chinese;
  }
  for (const char* other : {"", "C", "en_US.UTF-8", "zha", "de"}) {
    EXPECT_EQ(language_of(other), Language::kEnglish) << other;
  }
}

TEST(Language, AMessageWithoutTranslationStaysEnglish) {
  EXPECT_EQ(translate(Language::kChinese, "no such message {}"), "no such message {}");
  EXPECT_EQ(say(Language::kEnglish, "set {} to {}", "a", 1), "set a to 1");
  EXPECT_EQ(say(Language::kChinese, "set {} to {}", "a", 1), "把 a 设为 1");
}

/// What a message asks to be put in, by position.
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
  for (const auto& [english, chinese] : chinese_messages()) {
    EXPECT_EQ(placeholders(english), placeholders(chinese)) << english;
    EXPECT_TRUE(seen.insert(english).second) << english;
    EXPECT_FALSE(chinese.empty()) << english;
  }
}

TEST(Language, EveryRuleHasItsNameInChinese) {
  for (const Rule* rule : all_rules()) {
    EXPECT_NE(translate(Language::kChinese, rule->title), rule->title) << rule->id;
    const bool is_name = rule->topic == "TF32";
    EXPECT_TRUE(is_name || translate(Language::kChinese, rule->topic) != rule->topic) << rule->topic;
  }
}

TEST(Language, AWholeDiagnosisInChinese) {
  Signals signals = waiting_cpu(0.6);
  set_effective(signals, "cache.features", "off");
  signals.command = {"python", "train.py"};
  const Diagnosis diagnosis = diagnose::diagnose(signals, {}, Language::kChinese);
  for (const Finding& finding : diagnosis.findings) {
    for (const std::string& evidence : finding.evidence) {
      EXPECT_TRUE(has_chinese(evidence)) << evidence;
    }
    for (const Fix& fix : finding.fixes) {
      EXPECT_TRUE(has_chinese(fix.how)) << fix.how;
    }
  }
  for (const Abstention& abstention : diagnosis.abstained) {
    EXPECT_TRUE(has_chinese(abstention.missing)) << abstention.missing;
  }
  EXPECT_THAT(answer(diagnosis, Language::kChinese),
              HasSubstr("您的CPU每一步有 60 % 的时间在等待由单个线程准备的数据"));
  const std::string text = to_text(diagnosis, 80, false, Language::kChinese);
  EXPECT_THAT(text, HasSubstr("没有问题："));
  EXPECT_THAT(text, HasSubstr("试一试：unidle run --apply loader.workers=2"));
  EXPECT_EQ(to_json(diagnose::diagnose(signals))["verdict"], to_json(diagnosis)["verdict"]);
}

TEST(Language, ADiagnosisDoesNotDependOnIt) {
  const Signals signals = waiting_cpu(0.6);
  const Diagnosis english = diagnose::diagnose(signals);
  const Diagnosis chinese = diagnose::diagnose(signals, {}, Language::kChinese);
  ASSERT_EQ(english.findings.size(), chinese.findings.size());
  for (std::size_t i = 0; i < english.findings.size(); ++i) {
    EXPECT_EQ(english.findings[i].id, chinese.findings[i].id);
    EXPECT_EQ(english.findings[i].share, chinese.findings[i].share);
  }
}

}  // namespace
}  // namespace unidle::diagnose::testing
