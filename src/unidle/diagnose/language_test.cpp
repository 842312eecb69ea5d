
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/rule.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::HasSubstr;

/// True when `text` contains a character of the main Chinese block (U+4000 to U+9FFF).
bool has_chinese(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c >= 0xE4 && c <= 0xE9; });
}

TEST(Language, EveryRuleHasItsNameInChinese) {
  for (const Rule* rule : all_rules()) {
    EXPECT_NE(translate(Language::kChinese, rule->title), rule->title) << rule->id;
    const bool is_name = rule->topic == "TF32";
    EXPECT_TRUE(is_name || translate(Language::kChinese, rule->topic) != rule->topic) << rule->topic;
  }
}

TEST(Language, ThePartsOfASentenceAreInChineseToo) {
  Signals signals = healthy_cpu();
  signals.cpu_bf16 = true;
  const Diagnosis diagnosis = diagnose::diagnose(signals, {}, Language::kChinese);
  const auto found = std::ranges::find(diagnosis.findings, "precision-fp32", &Finding::id);
  ASSERT_NE(found, diagnosis.findings.end());
  EXPECT_THAT(found->evidence.front(), ::testing::Not(HasSubstr("units")));
}

TEST(Language, SentencesThatTheProgramRecordedAreInChineseToo) {
  Signals signals = waiting_cpu(0.6);
  signals.loader.emplace().source.emplace();
  signals.loader->source->code = "unidle.data.images(folder)";
  signals.loader->source->left = {
      "the folder needs a subfolder for each class, or a text file with lines PATH LABEL",
      "ToTensor and Normalize are to follow the crop, where the data set has ColorJitter, ToTensor"};
  const Diagnosis diagnosis = diagnose::diagnose(signals, {}, Language::kChinese);
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_THAT(diagnosis.findings.front().evidence,
              ::testing::Contains(HasSubstr("裁剪之后应是 ToTensor 与 Normalize，而数据集那里是 ColorJitter")));
  EXPECT_THAT(diagnosis.findings.front().evidence, ::testing::Not(::testing::Contains(HasSubstr("the folder"))));
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
    for (const knobs::Change& fix : finding.fixes) {
      EXPECT_TRUE(has_chinese(fix.reason)) << fix.reason;
    }
  }
  for (const Abstention& abstention : diagnosis.abstained) {
    EXPECT_TRUE(has_chinese(abstention.missing)) << abstention.missing;
  }
  EXPECT_THAT(answer(diagnosis, Language::kChinese),
              HasSubstr("您的训练每一步有 60 % 的时间在等待由单个线程准备的数据"));
  const std::string text = to_text(diagnosis, 80, false, Language::kChinese, true);
  EXPECT_THAT(text, HasSubstr("没有问题："));
  EXPECT_THAT(text, HasSubstr("试一试：unidle run --apply cache.features=memory"));
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
