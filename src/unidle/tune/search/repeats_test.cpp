#include "unidle/tune/search/repeats.h"

#include <gtest/gtest.h>

#include <cmath>

#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune {
namespace {

TrialResult at_loss(double loss) {
  TrialResult result = testing::at_rate(100);
  result.loss = loss;
  return result;
}

const knobs::Settings kWorkers = {{"loader.workers", 2}};

TEST(Repeats, TwoThatAgreeOrThreeAreEnough) {
  Repeats same({});
  same.add(at_loss(1));
  EXPECT_FALSE(same.are_enough()) << "one tells nothing of chance";
  same.add(at_loss(1));
  EXPECT_TRUE(same.are_enough());
  Repeats apart({});
  apart.add(at_loss(1));
  apart.add(at_loss(1.1));
  EXPECT_FALSE(apart.are_enough());
  apart.add(at_loss(0.95));
  EXPECT_TRUE(apart.are_enough());
}

TEST(Repeats, ARunThatLacksWhatTheBaselineReportsIsLeftOut) {
  Repeats repeats({});
  EXPECT_TRUE(repeats.add(at_loss(1)));
  TrialResult without = at_loss(1);
  without.loss.reset();
  EXPECT_FALSE(repeats.add(without));
  TrialResult more = at_loss(1);
  more.metrics["psnr"] = 25;
  EXPECT_FALSE(repeats.add(more));
  EXPECT_FALSE(repeats.are_enough());
}

TEST(Repeats, WhatTheProgramDiffersByItselfIsNoBreach) {
  Repeats repeats({});
  repeats.add(at_loss(1));
  EXPECT_FALSE(repeats.parity_of(at_loss(1.1), kWorkers).held);
  repeats.add(at_loss(1.08));
  EXPECT_TRUE(repeats.parity_of(at_loss(1.1), kWorkers).held);
  EXPECT_FALSE(repeats.parity_of(at_loss(1.9), kWorkers).held);
}

TEST(Repeats, OfAnotherEffectiveBatchOnlyANumberIsAsked) {
  Repeats repeats({{"batch.size", 4}, {"batch.accumulation", 4}});
  repeats.add(at_loss(1));
  const knobs::Settings same = {{"batch.size", 8}, {"batch.accumulation", 2}};
  const knobs::Settings other = {{"batch.size", 8}};
  EXPECT_FALSE(repeats.changes_effective_batch(same));
  EXPECT_TRUE(repeats.changes_effective_batch(other));
  EXPECT_FALSE(repeats.parity_of(at_loss(2), same).held);
  EXPECT_TRUE(repeats.parity_of(at_loss(2), other).held);
  EXPECT_FALSE(repeats.parity_of(at_loss(std::nan("")), other).held);
}

}  // namespace
}  // namespace unidle::tune
