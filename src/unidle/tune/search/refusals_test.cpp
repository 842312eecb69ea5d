#include "unidle/tune/search/refusals.h"

#include <gmock/gmock.h>

namespace unidle::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LoggedTrial asked_for(knobs::Settings changes) {
  LoggedTrial trial;
  trial.changes = std::move(changes);
  return trial;
}

TEST(Refusals, WhatTheProgramRefusedIsNoChange) {
  Refusals refusals;
  LoggedTrial trial = asked_for({{"loader.workers", 2}, {"optimizer.fused", true}});
  trial.result.refused = {{"loader.workers", "given by position"}, {"cpu.threads", "never asked for"}};
  refusals.take_out(trial);
  EXPECT_EQ(trial.changes, (knobs::Settings{{"optimizer.fused", true}}));
  EXPECT_THAT(trial.why, HasSubstr("loader.workers was not taken: given by position"));
  EXPECT_TRUE(refusals.contain("loader.workers", 2));
  EXPECT_FALSE(refusals.contain("loader.workers", 3)) << "another value may take";
  EXPECT_THAT(refusals.sentences(), ElementsAre("loader.workers=2: given by position"));
}

TEST(Refusals, AnotherValueInForceIsARefusal) {
  Refusals refusals;
  LoggedTrial trial = asked_for({{"precision.amp", "bf16"}, {"optimizer.fused", true}, {"loader.workers", 2}});
  trial.result.effective = {{"precision.amp", "off"}, {"optimizer.fused", "True"}};
  refusals.take_out(trial);
  EXPECT_EQ(trial.changes, (knobs::Settings{{"optimizer.fused", true}, {"loader.workers", 2}}))
      << "True is true, and of workers nothing was said";
  EXPECT_THAT(refusals.sentences(), ElementsAre("precision.amp: asked for bf16, but off is in effect"));
}

TEST(Refusals, AreToldOnce) {
  Refusals refusals;
  for (int i = 0; i < 2; ++i) {
    LoggedTrial trial = asked_for({{"loader.workers", 2}});
    trial.result.refused = {{"loader.workers", "why"}};
    refusals.take_out(trial);
    EXPECT_THAT(trial.changes, IsEmpty());
  }
  EXPECT_EQ(refusals.sentences().size(), 1u);
}

}  // namespace
}  // namespace unidle::tune
