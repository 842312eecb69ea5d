#include "unidle/tune/search/candidates.h"

#include <gmock/gmock.h>

namespace unidle::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const knobs::Settings kNoWorkers = {{"loader.workers", 0}, {"precision.amp", "off"}, {"batch.size", 2}};
const knobs::Settings kTwo = {{"loader.workers", 2}};
const knobs::Settings kFour = {{"loader.workers", 4}};
const knobs::Settings kBf16 = {{"precision.amp", "bf16"}};

TEST(Candidates, AreTakenByPromiseAndOnce) {
  const Refusals refusals;
  Candidates candidates(kNoWorkers, refusals, {});
  candidates.add(
      std::vector<Proposal>{{kFour, "", 0.2, false}, {kTwo, "", 0.5, true}, {{{"batch.size", 2}}, "", 1, true}});
  EXPECT_EQ(candidates.take_next({}), kTwo) << "a batch of 2 is what there is";
  EXPECT_EQ(candidates.take_next({}), kFour);
  EXPECT_FALSE(candidates.take_next({}));
}

TEST(Candidates, WhatTheBestHasIsNotNew) {
  const Refusals refusals;
  Candidates candidates(kNoWorkers, refusals, {});
  candidates.add(std::vector<Proposal>{{kTwo, "", 0.5, true}});
  EXPECT_FALSE(candidates.take_next(kTwo));
  EXPECT_THAT(candidates.bundle(kTwo, false), IsEmpty());
  EXPECT_EQ(candidates.take_next(kFour), kTwo);
}

TEST(Candidates, WhatWasRefusedIsNotTriedAgain) {
  Refusals refusals;
  Candidates candidates(kNoWorkers, refusals, {});
  candidates.add(std::vector<Proposal>{{kTwo, "", 0.5, true}});
  LoggedTrial trial;
  trial.changes = kTwo;
  trial.result.refused = {{"loader.workers", "why"}};
  refusals.take_out(trial);
  EXPECT_FALSE(candidates.take_next({}));
}

TEST(Candidates, ABundleHasTheBestOfEachKnob) {
  const Refusals refusals;
  Candidates candidates(kNoWorkers, refusals, {});
  candidates.add(std::vector<Proposal>{{kTwo, "", 0.3, true},
                                       {kFour, "", 0.4, true},
                                       {kBf16, "", 0.2, true},
                                       {{{"compile.mode", "graph"}}, "", 1, false}});
  EXPECT_EQ(candidates.bundle({}, false), knobs::overlaid(kFour, kBf16)) << "compiling has to be measured by itself";
  EXPECT_EQ(candidates.bundle({}, true), kFour) << "bf16 changes rounding";
  candidates.mark_tried(kFour);
  EXPECT_EQ(candidates.bundle({}, false), knobs::overlaid(kTwo, kBf16));
}

TEST(Candidates, WhatTheDiagnosisMeasuredGoesFirst) {
  const Refusals refusals;
  Candidates candidates(kNoWorkers, refusals, {});
  candidates.add(std::vector<Proposal>{{kTwo, "from the hardware", 0.9, false}, {kBf16, "", 0.95, false}});
  candidates.add(std::vector<Proposal>{{kTwo, "loader-no-workers: start them", kMeasuredFirst + 0.1, true},
                                       {{}, "odd: ", kMeasuredFirst + 1, true}});
  EXPECT_EQ(candidates.reason_of("loader.workers", 2), "loader-no-workers: start them");
  EXPECT_EQ(candidates.reason_of("loader.workers", 3), std::nullopt);
  EXPECT_EQ(candidates.bundle({}, false), kTwo);
  EXPECT_EQ(candidates.take_next({}), kTwo);
}

TEST(Candidates, OneValueWithoutAGainMakesTheOthersLessPromising) {
  const Refusals refusals;
  Candidates candidates(kNoWorkers, refusals, {});
  candidates.add(std::vector<Proposal>{{kTwo, "", 0.5, false}, {kFour, "", 0.4, false}, {kBf16, "", 0.3, false}});
  ASSERT_EQ(candidates.take_next({}), kTwo);
  candidates.lower_alternatives(kTwo);
  EXPECT_EQ(candidates.take_next({}), kBf16);
}

TEST(Candidates, OnlyWhatIsAskedForWithWhatGoesWithIt) {
  const Refusals refusals;
  Candidates candidates(kNoWorkers, refusals, {{"loader.pin_memory"}, false});
  const knobs::Settings copies = {{"loader.pin_memory", true}, {"transfer.non_blocking", true}};
  candidates.add(std::vector<Proposal>{{knobs::overlaid(copies, kTwo), "", 0.5, true}, {kBf16, "", 0.9, true}});
  EXPECT_EQ(candidates.bundle({}, false), copies);
  EXPECT_TRUE(is_asked_for({}, "loader.workers"));
  EXPECT_TRUE(is_asked_for({"batch.size"}, "optimizer.lr"));
  EXPECT_FALSE(is_asked_for({"batch.size"}, "loader.workers"));
}

TEST(Candidates, TheBatchMayHaveASearchOfItsOwn) {
  const Refusals refusals;
  Candidates candidates(kNoWorkers, refusals, {{}, true});
  candidates.add(std::vector<Proposal>{{{{"batch.size", 8}}, "", 1, true}});
  candidates.add(std::vector<Proposal>{{{{"batch.accumulation", 2}}, "", kMeasuredFirst + 1, true}});
  EXPECT_TRUE(candidates.empty());
  candidates.add_tried({{"batch.size", 8}}, "measured", 1);
  EXPECT_EQ(candidates.reason_of("batch.size", 8), "measured");
  EXPECT_FALSE(candidates.take_next({}));
}

TEST(Candidates, WhatWasNotMeasuredAloneIsTakenBackInUnits) {
  const Refusals refusals;
  Candidates candidates({}, refusals, {});
  const knobs::Settings copies = {{"loader.pin_memory", true}, {"transfer.non_blocking", true}};
  candidates.add(std::vector<Proposal>{{kTwo, "", 0.5, true}, {copies, "", 0.2, true}, {kBf16, "", 0.4, true}});
  const knobs::Settings best = knobs::overlaid(knobs::overlaid(copies, kTwo), kBf16);
  EXPECT_THAT(candidates.unconfirmed(best, {{"loader.workers", 1.5}}),
              ElementsAre(Unit{"loader.pin_memory", "transfer.non_blocking"}, Unit{"precision.amp"}))
      << "the least promising first";
}

}  // namespace
}  // namespace unidle::tune
