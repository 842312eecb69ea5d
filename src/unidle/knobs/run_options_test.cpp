#include "unidle/knobs/run_options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace unidle::knobs {
namespace {

TEST(RunOptions, ComeBackFromARecord) {
  const RunOptions options{200, 600.5, {{"loader.workers", 2}, {"precision.amp", "bf16"}}};
  EXPECT_EQ(run_options_from(to_json(options)), options);
  EXPECT_EQ(to_json(RunOptions{}), nlohmann::json::object());
  EXPECT_EQ(run_options_from(nlohmann::json::object()), RunOptions{});
}

TEST(RunOptions, WhatMakesNoSenseIsLeftOut) {
  for (const char* recorded :
       {"null", "[]", R"("--steps 9; rm -rf /")", R"({"steps": "9; rm"})", R"({"timeout_s": [1]})",
        R"({"steps": -4, "timeout_s": 0})", R"({"apply": 3})", R"({"apply": {"gone.knob": "1"}})",
        R"({"apply": {"loader.workers": "many"}})", R"({"steps": 1e300})", R"({"apply": {"loader.workers": 2}})"}) {
    EXPECT_EQ(run_options_from(nlohmann::json::parse(recorded)), RunOptions{}) << recorded;
  }
}

TEST(RunOptions, WordsAreThoseOfTheCommand) {
  const RunOptions options{200, 600, {{"loader.workers", 2}, {"precision.amp", "bf16"}}};
  EXPECT_EQ(in_words(options), "--steps 200 --timeout 600 --apply loader.workers=2 --apply precision.amp=bf16 ");
  EXPECT_EQ(in_words(options, {"loader.workers"}), "--steps 200 --timeout 600 --apply precision.amp=bf16 ");
  EXPECT_EQ(in_words({}), "");
}

}  // namespace
}  // namespace unidle::knobs
