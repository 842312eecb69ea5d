#include "unidle/train/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "unidle/base/error.h"
#include "unidle/base/testing/generated_docs.h"

namespace unidle::train {
namespace {

using ::testing::HasSubstr;

Error failure_to_read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    Config::from_text(text, "c.yaml", overrides);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "", "no failure"};
}

TEST(Config, ReadsNestedKeysAndFillsInDefaults) {
  const Config config = Config::from_text("workload: superres\noptimizer:\n  lr: 1e-3\n  fused: true\n", "c.yaml");
  EXPECT_EQ(config.text("workload"), "superres");
  EXPECT_DOUBLE_EQ(config.real("optimizer.lr"), 1e-3);
  EXPECT_TRUE(config.flag("optimizer.fused"));
  EXPECT_EQ(config.integer("batch.size"), 4);
  EXPECT_EQ(config.location("optimizer.fused"), "c.yaml:4");
  EXPECT_EQ(config.location("batch.size"), "");
}

TEST(Config, OverridesWin) {
  const Config config = Config::from_text("workload: superres\nbatch.size: 4\n", "c.yaml", {"batch.size=2"});
  EXPECT_EQ(config.integer("batch.size"), 2);
  EXPECT_EQ(config.location("batch.size"), "command line");
}

TEST(Config, UnknownKeyNamesLineAndClosestKey) {
  const Error error = failure_to_read("workload: superres\nloader:\n  num_worker: 4\n");
  EXPECT_EQ(error.code(), ErrorCode::kInput);
  EXPECT_EQ(error.subject(), "c.yaml:3");
  EXPECT_THAT(error.message(), HasSubstr("loader.num_worker"));
  EXPECT_THAT(error.hint(), HasSubstr("loader.workers"));
}

TEST(Config, KeyInTheWrongSectionIsFound) {
  EXPECT_EQ(closest_setting("train.pin_memory"), "loader.pin_memory");
  EXPECT_EQ(closest_setting("zzz"), "");
  EXPECT_THAT(failure_to_read("workload: w\n", {"optimizer.strange=1"}).hint(),
              ::testing::StartsWith("optimizer has name, lr, "));
}

TEST(Config, AnotherWordWhereAPrecisionIsExpected) {
  const Error error = failure_to_read("workload: superres\nprecision:\n  amp: half\n");
  EXPECT_EQ(error.exit_code(), 2);
  EXPECT_EQ(error.subject(), "c.yaml:3: precision.amp");
  EXPECT_THAT(error.message(), HasSubstr("expected off, auto, fp16, bf16 or true"));
}

TEST(Config, AKeyIsSetOnlyOnce) {
  const Error failure = failure_to_read("workload: superres\nbatch:\n  size: 4\n  size: 8\n");
  EXPECT_THAT(failure.what(), HasSubstr(":4: 'batch.size' is set here and at "));
  EXPECT_THAT(failure.what(), HasSubstr(":3"));
}

TEST(Config, RefusesNumbersOutOfRangeAndOddOverrides) {
  EXPECT_THAT(failure_to_read("workload: w\nbatch.size: 0\n").message(), HasSubstr("1 or more"));
  EXPECT_THAT(failure_to_read("workload: w\nbatch.size: 4.5\n").message(), HasSubstr("whole number"));
  EXPECT_THAT(failure_to_read("workload: w\noptimizer.lr: nan\n").message(), HasSubstr("a number"));
  EXPECT_EQ(failure_to_read("workload: w\n", {"batch.size"}).code(), ErrorCode::kUsage);
  EXPECT_EQ(failure_to_read("workload: w\n", {"batch.sise=3"}).hint(), "did you mean batch.size?");
}

TEST(Config, WorkloadIsRequired) { EXPECT_EQ(failure_to_read("seed: 2\n").code(), ErrorCode::kInput); }

TEST(Config, EveryDefaultIsOfItsType) {
  const Config config = Config::from_text("workload: w\n", "c.yaml");
  for (const Setting& setting : all_settings()) {
    if (setting.type == SettingType::kText) {
      continue;
    }
    EXPECT_NO_THROW(
        Config::from_text("workload: w\n", "c.yaml", {std::string(setting.name) + "=" + config.text(setting.name)}))
        << setting.name;
  }
}

TEST(Config, TheCommandThatPreparesHasTheSettingsThatWereGiven) {
  const Config config =
      Config::from_text("workload: w\n", "my run.yaml", {"data.folder=here", "prepare.source=two words"});
  EXPECT_EQ(config.prepare_command(),
            "unidle-train 'my run.yaml' --prepare data.folder=here 'prepare.source=two words'");
}

TEST(Config, NothingIsSuggestedForAStrangeKey) {
  EXPECT_EQ(closest_setting("foo.bar"), "");
  EXPECT_EQ(closest_setting("nope"), "");
  EXPECT_EQ(closest_setting("batchh.size"), "batch.size");
  EXPECT_EQ(closest_setting("num_workers"), "loader.workers");
  EXPECT_EQ(closest_setting("model.widht"), "model.width");
  EXPECT_EQ(closest_setting("batch"), "batch.size");
  EXPECT_EQ(closest_setting("optimizer.learning_rate"), "");
  EXPECT_EQ(closest_setting("table.path"), "");
}

TEST(Config, NamesOfOtherFrameworksLeadToTheKey) {
  EXPECT_EQ(failure_to_read("workload: w\nlearning_rate: 0.1\n").hint(), "here it is optimizer.lr");
  EXPECT_EQ(failure_to_read("workload: w\noptimizer.learning_rate: 0.1\n").hint(), "here it is optimizer.lr");
  EXPECT_EQ(failure_to_read("workload: w\n", {"gradient_accumulation_steps=4"}).hint(),
            "here it is batch.accumulation");
  EXPECT_EQ(failure_to_read("workload: w\n", {"zzz=[: }"}).hint(), "the keys are listed in docs/training.md");
}

std::string described_type(const Setting& setting) {
  switch (setting.type) {
    case SettingType::kText: return "text";
    case SettingType::kBool: return "true or false";
    case SettingType::kInt: return "whole number";
    case SettingType::kReal: return "number";
    case SettingType::kChoice: break;
  }
  return fmt::format("{}", fmt::join(setting.choices, ", "));
}

TEST(Config, TheManualListsEveryKey) {
  std::string rows;
  for (const Setting& setting : all_settings()) {
    const std::string fallback = setting.fallback.empty() ? "" : fmt::format("`{}`", setting.fallback);
    rows +=
        fmt::format("| `{}` | {} | {} | {} |\n", setting.name, described_type(setting), fallback, setting.explanation);
  }
  unidle::testing::expect_generated_table(UNIDLE_SOURCE_DIR "/docs/training.md",
                                          "| key | value | default | meaning |\n|---|---|---|---|\n", rows);
}

}  // namespace
}  // namespace unidle::train
