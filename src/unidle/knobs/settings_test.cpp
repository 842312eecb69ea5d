#include "unidle/knobs/settings.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "unidle/base/error.h"

namespace unidle::knobs {
namespace {

using ::testing::HasSubstr;

TEST(Settings, AWrongValueNamesFileLineAndKey) {
  try {
    read_settings(ConfigFile::from_text("a: 1\nprecision:\n  amp: half\n", "c.yaml"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_EQ(error.subject(), "c.yaml:3: precision.amp");
    EXPECT_THAT(error.message(), HasSubstr("off, fp16, bf16"));
  }
}

TEST(Settings, MixedPrecisionThatSaysTrueSetsNothing) {
  const Settings settings =
      read_settings(ConfigFile::from_text("workload: keypoint\nprecision:\n  amp: true\n  tf32: true\n", "c.yaml"));
  EXPECT_EQ(settings, (Settings{{"precision.tf32", true}}));
  EXPECT_EQ(settings.in_force("precision.amp"), "off");
  EXPECT_THROW(read_settings(ConfigFile::from_text("compile:\n  mode: true\n", "c.yaml")), Error);
}

TEST(Settings, WhatIsLeftToTheProgramSetsNothing) {
  const char* text = "workload: keypoint\nprecision: {amp: auto}\ncompile: {mode: auto}\n";
  EXPECT_EQ(read_settings(ConfigFile::from_text(text, "c.yaml")), Settings{});
}

TEST(Settings, HoldValuesOfTheirKnobsType) {
  Settings settings = {{"loader.workers", 4}, {"validation.interval", 2}, {"precision.amp", "bf16"}};
  EXPECT_EQ(settings.integer("loader.workers"), 4);
  EXPECT_EQ(settings.in_force("validation.interval"), 2.0);
  EXPECT_EQ(settings.integer("loader.prefetch_factor"), 2) << "the fallback";
  EXPECT_EQ(settings.in_force("model.width"), std::nullopt);
  EXPECT_THROW(settings.set("loader.workers", "4"), Error) << "a text";
  EXPECT_THROW(settings.set("loader.workers", -1), Error);
  EXPECT_THROW(settings.set("loader.pin_memory", 1), Error);
  EXPECT_THROW(settings.set("precision.amp", "half"), Error);
  EXPECT_THROW(settings.set("loader.speed", 4), Error);
  EXPECT_EQ(describe(settings), "loader.workers=4 precision.amp=bf16 validation.interval=2");
}

TEST(Settings, KeptAsTextsTheyComeBackTheSame) {
  const Settings settings = {{"loader.pin_memory", true}, {"loader.workers", 0}, {"optimizer.lr", 0.0002}};
  const nlohmann::json texts = settings;
  EXPECT_EQ(texts,
            nlohmann::json({{"loader.pin_memory", "true"}, {"loader.workers", "0"}, {"optimizer.lr", "0.0002"}}));
  EXPECT_EQ(settings_from(texts), settings);
  EXPECT_THROW(settings_from({{"loader.workers", "many"}}), Error);
  EXPECT_THROW(settings_from({{"loader.speed", "4"}}), Error);
}

}  // namespace
}  // namespace unidle::knobs
