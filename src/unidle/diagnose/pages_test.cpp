#include "unidle/diagnose/pages.h"

#include <gmock/gmock.h>

#include <set>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose {
namespace {

TEST(Pages, DocsRulesIsWhatTheRulesSay) {
  EXPECT_EQ(read_file(UNIDLE_SOURCE_DIR "/docs/rules.md"), rules_markdown())
      << "docs/rules.md is stale: unidle diagnose --rules-markdown > docs/rules.md";
}

TEST(Pages, EveryRuleIsDescribedAndNamedOnce) {
  std::set<std::string> ids;
  for (const Rule* rule : all_rules()) {
    EXPECT_TRUE(ids.insert(rule->id).second) << rule->id;
    for (const std::string& text :
         {rule->title, rule->topic, rule->explanation, rule->thresholds, rule->needs, rule->proposes}) {
      EXPECT_FALSE(text.empty()) << rule->id;
    }
    EXPECT_THAT(explain(rule->id, 80), ::testing::HasSubstr(rule->title));
  }
  EXPECT_GE(ids.size(), 14U);
}

TEST(Pages, AnUnknownRuleIsAUsageError) {
  try {
    explain("loader-no-worker", 80);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.subject(), "loader-no-worker");
  }
  try {
    explain("workers", 80);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the nearest are loader-no-workers, "));
    EXPECT_LT(std::string(error.what()).size(), 200U);
  }
}

}  // namespace
}  // namespace unidle::diagnose
