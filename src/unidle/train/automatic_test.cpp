#include "unidle/train/automatic.h"

#include <gtest/gtest.h>

namespace unidle::train {
namespace {

constexpr const char* kOpen =
    "workload: line\nprecision.amp: auto\ncompile.mode: auto\ntrain: {samples: 40, samples_on_gpu: 4000}\n";

TEST(ChosenOn, ACpuTakesNeitherBf16NorGraphs) {
  const Config config = chosen_on(at::kCPU, Config::from_text(kOpen, "line.yaml"));
  EXPECT_EQ(config.text("precision.amp"), "off");
  EXPECT_EQ(config.text("compile.mode"), "off");
  EXPECT_EQ(config.integer("train.samples"), 40);
}

TEST(ChosenOn, AGpuTakesAGraphAndALongerRun) {
  const Config config = chosen_on(at::Device(at::kCUDA, 0), Config::from_text(kOpen, "line.yaml"));
  EXPECT_EQ(config.text("compile.mode"), "graph");
  EXPECT_EQ(config.integer("train.samples"), 4000);
}

TEST(ChosenOn, WhatWasWrittenIsStillKnown) {
  const Config config = chosen_on(at::kCPU, Config::from_text(kOpen, "line.yaml"));
  EXPECT_EQ(config.written("precision.amp"), "auto");
  EXPECT_EQ(config.location("precision.amp"), "line.yaml:2");
  EXPECT_EQ(config.written("seed"), "1");
}

TEST(ChosenOn, WhatIsSaidIsLeftAlone) {
  const Config said =
      Config::from_text(kOpen, "line.yaml", {"precision.amp=bf16", "compile.mode=off", "train.samples=80"});
  const Config config = chosen_on(at::Device(at::kCUDA, 0), said);
  EXPECT_EQ(config.text("precision.amp"), "bf16");
  EXPECT_EQ(config.text("compile.mode"), "off");
  EXPECT_EQ(config.integer("train.samples"), 80);
}

}  // namespace
}  // namespace unidle::train
