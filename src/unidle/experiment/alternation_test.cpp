#include "unidle/experiment/alternation.h"

#include <gtest/gtest.h>

#include <vector>

namespace unidle::experiment {
namespace {

constexpr double kLimit = 1.01;

Measurement beside(double rate, double others_cpus) { return {rate, others_cpus}; }

Alternation alternation_of(double change, double reference, bool confirm = false, bool neighbours = true) {
  return {beside(change, 0), beside(reference, 0), neighbours, confirm};
}

TEST(Alternation, OneRunDecidesWhatLiesFarFromTheLimit) {
  const Scatter scatter;
  EXPECT_FALSE(alternation_of(150, 100).is_open(kLimit, scatter, false));
  EXPECT_FALSE(alternation_of(95, 100).is_open(kLimit, scatter, false));
  EXPECT_TRUE(alternation_of(102, 100).is_open(kLimit, scatter, false)) << "as far as runs of one setting lie apart";
  EXPECT_TRUE(alternation_of(80, 100).is_open(kLimit, scatter, false)) << "so slow that it may be the machine";
  EXPECT_TRUE(alternation_of(95, 100, false, false).is_open(kLimit, scatter, true))
      << "others were there, and not then";
}

TEST(Alternation, BeginsWithTheReference) {
  Scatter scatter;
  Alternation turns = alternation_of(102, 100);
  EXPECT_TRUE(turns.reference_is_next());
  EXPECT_NEAR(turns.take(beside(90, 0), scatter).ratio, 102.0 / 90, 1e-12);
  EXPECT_FALSE(turns.reference_is_next());
  EXPECT_NEAR(turns.take(beside(99, 0), scatter).ratio, 99.0 / 90, 1e-12) << "with its neighbour";
  EXPECT_EQ(turns.taken(), 2);
  EXPECT_NEAR(turns.ratio(), 99.0 / 90, 1e-12) << "the median";
  EXPECT_EQ(turns.change().rate, 99);
  EXPECT_EQ(turns.reference().rate, 90);
}

TEST(Alternation, ARatioToAnOlderRunIsReplacedByOneToANeighbour) {
  Scatter scatter;
  Alternation turns = alternation_of(150, 100, false, false);
  EXPECT_NEAR(turns.ratio(), 1.5, 1e-12);
  turns.take(beside(148, 0), scatter);
  EXPECT_EQ(turns.counted(), 1u);
  EXPECT_NEAR(turns.ratio(), 150.0 / 148, 1e-12);
}

TEST(Alternation, OfTwoRunsOneOfWhichOthersDisturbedNothingIsCounted) {
  Scatter scatter;
  Alternation turns(beside(50, 2), beside(100, 0), true, false);
  EXPECT_EQ(turns.counted(), 0u);
  EXPECT_TRUE(turns.is_open(kLimit, scatter, true));
  EXPECT_TRUE(turns.take(beside(40, 2), scatter).counts);
  EXPECT_NEAR(turns.ratio(), 1.25, 1e-12);
  EXPECT_FALSE(turns.take(beside(120, 0), scatter).counts);
  EXPECT_EQ(turns.counted(), 1u);
}

std::vector<double> changes_in(const Alternation& turns) {
  std::vector<double> rates;
  for (const PairOfRates& pair : turns.pairs()) {
    rates.push_back(pair.b.value);
  }
  return rates;
}

TEST(Alternation, ARunIsInOnePairOnly) {
  Scatter scatter;
  Alternation turns = alternation_of(102, 100);
  EXPECT_EQ(changes_in(turns), std::vector<double>{102});
  turns.take(beside(90, 0), scatter);
  EXPECT_EQ(changes_in(turns), std::vector<double>{102}) << "102 is in the pair with 100";
  turns.take(beside(99, 0), scatter);
  EXPECT_EQ(changes_in(turns), (std::vector<double>{102, 99}));
  EXPECT_EQ(turns.pairs().back().a.value, 90);
  Alternation stale = alternation_of(150, 100, false, false);
  stale.take(beside(120, 0), scatter);
  ASSERT_EQ(stale.pairs().size(), 1u);
  EXPECT_EQ(stale.pairs().front().a.value, 120) << "the neighbour";
  EXPECT_TRUE(Alternation(beside(50, 2), beside(100, 0), true, false).pairs().empty()) << "others disturbed one";
}

TEST(Alternation, WhatHasToBeConfirmedNeedsASecondRunOfItself) {
  Scatter scatter;
  Alternation turns = alternation_of(150, 100, true);
  int more = 0;
  for (; turns.is_open(kLimit, scatter, false); ++more) {
    turns.take(beside(turns.reference_is_next() ? 100 : 150, 0), scatter);
  }
  EXPECT_EQ(more, 2);
  EXPECT_FALSE(alternation_of(90, 100, true).is_open(kLimit, scatter, false)) << "one against it is enough";
}

TEST(Alternation, HasAnEnd) {
  Scatter scatter;
  Alternation close = alternation_of(101, 100);
  for (int i = 0; close.is_open(kLimit, scatter, false); ++i) {
    ASSERT_LT(i, 10);
    close.take(beside(close.reference_is_next() ? 100 : 101, 0), scatter);
  }
  EXPECT_EQ(close.counted(), 7u);
  Alternation disturbed(beside(50, 2), beside(100, 0), true, false);
  for (int i = 0; disturbed.is_open(kLimit, scatter, true); ++i) {
    ASSERT_LT(i, 10);
    disturbed.take(disturbed.reference_is_next() ? beside(100, 0) : beside(50, 2), scatter);
  }
  EXPECT_EQ(disturbed.taken(), 9) << "none of them counts";
}

TEST(Scatter, IsLearnedFromRunsOfOneSetting) {
  Scatter scatter;
  const double usual = scatter.of_ratio();
  for (int i = 0; i < 20; ++i) {
    scatter.add(beside(100, 0), beside(100, 0));
  }
  EXPECT_LT(scatter.of_ratio(), usual / 5);
  scatter.add(beside(100, 0), beside(50, 2));
  EXPECT_LT(scatter.of_ratio(), usual / 5) << "not comparable";
  const double before = scatter.of_ratio();
  scatter.add(beside(100, 0), beside(1000, 0));
  EXPECT_LT(scatter.of_ratio(), before + 0.02) << "an accident counts as a wide difference, not as nine times";
}

}  // namespace
}  // namespace unidle::experiment
