#include "unidle/knobs/settings.h"

#include <gmock/gmock.h>

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
  EXPECT_EQ(settings, (Settings{{"precision.tf32", "true"}}));
  EXPECT_EQ(knobs::value_of(settings, "precision.amp"), "off");
  EXPECT_THROW(read_settings(ConfigFile::from_text("compile:\n  mode: true\n", "c.yaml")), Error);
}

TEST(Settings, WhatIsLeftToTheProgramSetsNothing) {
  const char* text = "workload: keypoint\nprecision: {amp: auto}\ncompile: {mode: auto}\n";
  EXPECT_EQ(read_settings(ConfigFile::from_text(text, "c.yaml")), Settings{});
}

}  // namespace
}  // namespace unidle::knobs
