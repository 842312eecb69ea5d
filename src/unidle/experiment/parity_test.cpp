#include "unidle/experiment/parity.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace unidle::experiment {
namespace {

using ::testing::HasSubstr;

using Metrics = std::map<std::string, double>;

Learned with(std::optional<double> loss, const Metrics& metrics = {}) {
  Learned learned;
  if (loss) {
    learned.loss = Reading{*loss, 0, 0};
  }
  for (const auto& [name, value] : metrics) {
    learned.metrics[name] = Reading{value, 0, 0};
  }
  return learned;
}

bool held(const Learned& before, const Learned& after, Demand demand, const Spread& chance = {}) {
  return parity_of({before}, {after}, demand, chance).held;
}

Verdict verdict(const Learned& before, const Learned& after, Demand demand = Demand::kAsGood) {
  return parity_of({before}, {after}, demand).measures.front().verdict;
}

TEST(Parity, TheDemandFollowsFromWhatChanged) {
  EXPECT_EQ(demand_of({"loader.workers"}), Demand::kSame);
  EXPECT_EQ(demand_of({"loader.workers", "precision.amp"}), Demand::kAsGood);
  EXPECT_EQ(demand_of({}), Demand::kAsGood) << "nobody knows what changed";
}

TEST(Parity, ExactChangesMustKeepTheLossBothWays) {
  EXPECT_TRUE(held(with(1.0), with(1.01), Demand::kSame));
  EXPECT_FALSE(held(with(1.0), with(1.04), Demand::kSame));
  EXPECT_FALSE(held(with(1.0), with(0.9), Demand::kSame));
  const Parity lower = parity_of({with(1.0)}, {with(0.9)}, Demand::kSame);
  EXPECT_EQ(lower.measures.front().verdict, Verdict::kBetter);
  EXPECT_THAT(lower.why, HasSubstr("the samples differ"));
}

TEST(Parity, OtherChangesMayOnlyNotGetWorse) {
  EXPECT_TRUE(held(with(1.0), with(1.04), Demand::kAsGood));
  EXPECT_TRUE(held(with(1.0), with(0.8), Demand::kAsGood));
  EXPECT_FALSE(held(with(1.0), with(1.06), Demand::kAsGood));
  EXPECT_FALSE(held(with(-1.0), with(-0.9), Demand::kAsGood)) << "a loss may be negative";
}

TEST(Parity, NearZeroAShareOfTheLossMeansNothing) {
  Learned before = with(0.001);
  EXPECT_FALSE(held(before, with(0.002), Demand::kSame));
  before.loss_fall = 2;
  EXPECT_TRUE(held(before, with(0.002), Demand::kSame));
  EXPECT_FALSE(held(before, with(0.03), Demand::kSame));
}

TEST(Parity, NotANumberIsNeverParity) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Demand demand : {Demand::kSame, Demand::kAsGood, Demand::kFinite}) {
    EXPECT_FALSE(held(with(1.0), with(nan), demand));
  }
  EXPECT_FALSE(held(with(1.0, {{"psnr", 30}}), with(1.0, {{"psnr", nan}}), Demand::kSame));
  EXPECT_FALSE(held(with(1.0, {{"mae", 3}}), with(1.0, {{"mae", nan}}), Demand::kSame));
  EXPECT_TRUE(held(with(nan), with(1.0), Demand::kSame)) << "there is nothing to compare with";
}

TEST(Parity, OfAnotherEffectiveBatchOnlyANumberIsAsked) {
  EXPECT_TRUE(held(with(1.0, {{"psnr", 30}}), with(3.0, {{"psnr", 20}}), Demand::kFinite));
}

TEST(Parity, MetricsKnowTheirDirection) {
  const auto metric_held = [](const std::string& name, double before, double after) {
    return held(with({}, {{name, before}}), with({}, {{name, after}}), Demand::kAsGood);
  };
  EXPECT_TRUE(metric_held("psnr", 25.0, 24.9)) << "exactly 0.1 dB";
  EXPECT_FALSE(metric_held("psnr", 25.0, 24.85));
  EXPECT_TRUE(metric_held("psnr", 25.0, 26.0));
  EXPECT_FALSE(metric_held("val_psnr", 25.0, 24.85));
  EXPECT_FALSE(metric_held("mae", 1.0, 1.1));
  EXPECT_TRUE(metric_held("mae", 1.0, 0.5));
  EXPECT_FALSE(metric_held("auc", 0.8, 0.7));
  EXPECT_FALSE(metric_held("val/acc", 0.8, 0.7));
  EXPECT_FALSE(metric_held("rmse_log", 1.0, 1.1));
  EXPECT_TRUE(metric_held("val_loss", 1.0, 1.04)) << "the band of a loss";
  EXPECT_FALSE(metric_held("val_loss", 1.0, 1.06));
}

TEST(Parity, AMetricWhoseNameTellsNothingIsStatedOnly) {
  for (const char* name : {"lr", "epoch_seconds", "loss_scale", "accumulated"}) {
    const Parity parity = parity_of({with(1.0, {{name, 1}})}, {with(1.0, {{name, 2}})}, Demand::kSame);
    EXPECT_TRUE(parity.held) << name;
    EXPECT_FALSE(parity.measures.at(1).judged) << name;
    EXPECT_EQ(parity.measures.at(1).verdict, Verdict::kEqual) << name;
  }
}

TEST(Parity, RunsOfTheProgramItselfTellHowFarChanceGoes) {
  const std::vector<Learned> repeats = {with(1.0, {{"psnr", 25.0}, {"acc", 0.80}}),
                                        with(1.08, {{"psnr", 25.6}, {"acc", 0.86}})};
  const Spread spread = spread_of(repeats);
  const Spread single = spread.of_difference(1, 1);
  EXPECT_NEAR(single.loss, 0.08, 1e-12) << "of two runs, what was seen of two runs";
  EXPECT_FALSE(held(with(1.0), with(1.2), Demand::kSame));
  EXPECT_TRUE(held(with(1.0), with(1.2), Demand::kSame, single));
  EXPECT_FALSE(held(with(1.0), with(1.4), Demand::kSame, single));
  EXPECT_FALSE(held(with(1.0), with(1.2), Demand::kSame, spread.of_difference(16, 16)));
  EXPECT_TRUE(held(with(1.0, {{"psnr", 25.0}}), with(1.0, {{"psnr", 24.0}}), Demand::kSame, single));
  EXPECT_FALSE(held(with(1.0, {{"psnr", 25.0}}), with(1.0, {{"psnr", 22.0}}), Demand::kSame, single));
  EXPECT_TRUE(held(with(1.0, {{"acc", 0.8}}), with(1.0, {{"acc", 0.7}}), Demand::kSame, single));
}

TEST(Parity, ChanceThatHidesEverythingIsNotEqual) {
  Spread wide;
  wide.loss = 0.1;
  EXPECT_EQ(parity_of({with(1.0)}, {with(1.1)}, Demand::kAsGood, wide).measures.front().verdict,
            Verdict::kNotComparable);
  EXPECT_EQ(parity_of({with(1.0)}, {with(1.6)}, Demand::kAsGood, wide).measures.front().verdict, Verdict::kWorse);
  EXPECT_FALSE(parity_of({with(1.0)}, {with(1.1)}, Demand::kAsGood, wide).compared());
}

TEST(Parity, WhatIsNotReportedIsNotCompared) {
  EXPECT_TRUE(held(with({}), with(7.0), Demand::kSame));
  EXPECT_EQ(verdict(with({}), with(7.0)), Verdict::kNotComparable);
  EXPECT_TRUE(held(with(1.0, {{"psnr", 25.0}}), with(1.0), Demand::kSame));
}

TEST(Parity, OfSeveralRunsTheMeansAreCompared) {
  Learned uncertain = with(1.06);
  uncertain.loss->error = 0.02;
  EXPECT_TRUE(held(with(1.0), uncertain, Demand::kSame)) << "8 % pass for chance";
  std::vector<Learned> different;
  for (int i = 0; i < 6; ++i) {
    different.push_back(uncertain);
    different.back().loss->value += 0.001 * i;
  }
  EXPECT_FALSE(parity_of({with(1.0)}, different, Demand::kSame).held) << "together they show what one hides";
  const std::vector<Learned> seeded(6, uncertain);
  EXPECT_TRUE(parity_of({with(1.0)}, seeded, Demand::kSame).held) << "the same draw six times says no more than once";
}

TEST(Parity, SaysWhatItFoundAndWhatIsAllowed) {
  Learned before = with(1.0);
  Learned after = with(1.2);
  before.loss->samples = after.loss->samples = 800;
  EXPECT_EQ(parity_of({before}, {after}, Demand::kAsGood).why,
            "loss at 800 samples is 1.2 against 1 (+20.0 %, allowed 5 %)");
}

}  // namespace
}  // namespace unidle::experiment
