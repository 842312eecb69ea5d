#include "unidle/tune/output/recorded.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "unidle/tune/output/result.h"

namespace unidle::tune {
namespace {

using nlohmann::json;

TEST(Recorded, WhatAnOptimisationWroteComesBack) {
  knobs::Change change = knobs::change_of("loader.workers", 0, 4, "the step waits");
  change.gain = 1.5;
  LoggedTrial trial;
  trial.index = 2;
  trial.stage = "step";
  trial.changes = {{"loader.workers", 4}, {"precision.amp", "bf16"}};
  trial.verdict = "kept";
  trial.why = "1.500x of the best so far";
  trial.result.ok = true;
  trial.result.rate = 64;
  trial.result.loss = 0.25;
  Verification verification;
  verification.baseline = {10, 11};
  verification.winner = {15, 16};
  verification.ratio = 1.48;
  verification.interval = {1.45, 1.5};
  verification.shown = verification.compared = true;

  const Recorded found = recorded(json::array({to_json(change)}), json::array({to_json(trial)}), to_json(verification));
  EXPECT_EQ(found.unreadable, 0u);
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(to_json(found.changes[0]), to_json(change));
  ASSERT_EQ(found.trials.size(), 1u);
  EXPECT_EQ(to_json(found.trials[0]), to_json(trial));
  ASSERT_TRUE(found.verification);
  EXPECT_EQ(to_json(*found.verification), to_json(verification));
}

TEST(Recorded, OtherFormsAreOnlyCounted) {
  const json odd = json::array({1, {{"knob", "loader.speed"}, {"from", "1"}, {"to", "2"}}, json::array()});
  const Recorded found = recorded(odd, {{"trial", 1}}, "fast");
  EXPECT_EQ(found.unreadable, 5u);
  EXPECT_TRUE(found.changes.empty() && found.trials.empty() && !found.verification);
  EXPECT_EQ(recorded({}, {}, {}).unreadable, 0u) << "a record of a run";
}

}  // namespace
}  // namespace unidle::tune
