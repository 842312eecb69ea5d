#include "unidle/experiment/equal_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace unidle::experiment {
namespace {

/// Forty losses, four samples apart, that oscillate around a level.
Curve swinging(double level, double swing) {
  Curve curve;
  for (int i = 0; i < 40; ++i) {
    curve.push_back({i * 4.0, level + (i % 2 == 0 ? swing : -swing)});
  }
  return curve;
}

/// A falling noisy loss, every `apart` samples up to `samples`.
Curve falling(int samples, int apart, double factor, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> unit;
  Curve curve;
  for (int at = 0; at < samples; at += apart) {
    curve.push_back({static_cast<double>(at), factor * (0.1 + std::exp(-at / 300.0)) * (1 + 0.05 * unit(random))});
  }
  return curve;
}

TEST(EqualSamples, LossesAtTheSameSamplesAreComparedOneByOne) {
  const auto same = at_equal_samples(swinging(1, 0.4), swinging(1, 0.4));
  const auto shifted = at_equal_samples(swinging(1, 0.4), swinging(1.05, 0.4));
  const auto other = at_equal_samples(swinging(1, 0.4), swinging(1.05, -0.4));
  ASSERT_TRUE(same && shifted && other);
  EXPECT_EQ(same->a, same->b);
  EXPECT_EQ(same->error, 0);
  EXPECT_NEAR(shifted->b - shifted->a, 0.05, 1e-9);
  EXPECT_NEAR(shifted->error, 0, 1e-9) << "every single step is worse: that is no chance";
  EXPECT_GT(other->error, 0.1) << "random samples in another order";
}

TEST(EqualSamples, CurvesAtOtherSamplesAreSmoothed) {
  const auto found = at_equal_samples(falling(2000, 4, 1, 1), falling(2000, 6, 1, 2));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->b, found->a, 4 * found->error);
  EXPECT_LT(found->error, 0.05 * found->a);
  EXPECT_GT(found->fall, 0.5);
}

TEST(EqualSamples, TheTailOfWhatBothHaveSeenCounts) {
  const auto found = at_equal_samples(falling(4000, 4, 1, 1), falling(2000, 4, 1, 2));
  ASSERT_TRUE(found);
  EXPECT_LE(found->samples, 2000);
  EXPECT_GE(found->samples, 1900);
}

TEST(EqualSamples, AFewLossesAreNoCurve) {
  EXPECT_FALSE(at_equal_samples({}, swinging(1, 0)));
  EXPECT_FALSE(at_equal_samples({{0, 1}, {4, 1}}, {{0, 1}, {4, 1}}));
  EXPECT_FALSE(at_equal_samples(swinging(1, 0), {{1000, 1}, {1004, 1}, {1008, 1}, {1012, 1}, {1016, 1}}))
      << "no common samples";
  EXPECT_FALSE(at_equal_samples(swinging(1, 0), {{156, 1}})) << "one loss beside a curve";
  EXPECT_TRUE(at_equal_samples(swinging(1, 0), {{3, 1}, {120, 1}})) << "two losses, with a curve between them";
}

TEST(EqualSamples, WithoutACountOfSamplesThereIsNothingToCompare) {
  Curve uncounted = swinging(1, 0.4);
  for (auto& point : uncounted) {
    point.samples = 0;
  }
  EXPECT_FALSE(at_equal_samples(uncounted, uncounted));
}

Learned read(LossScale& scale, const Curve& curve, std::size_t not_finite = 0) {
  Learned learned;
  scale.read({curve, not_finite, {}}, learned);
  return learned;
}

TEST(LossScale, EveryRunStandsBesideTheFirst) {
  LossScale scale;
  const Learned first = read(scale, swinging(1, 0.4));
  ASSERT_TRUE(first.loss);
  EXPECT_EQ(first.loss->error, 0);
  Curve half = swinging(1.05, 0.4);
  std::erase_if(half, [](const CurvePoint& point) { return point.samples < 80; });
  EXPECT_NEAR(read(scale, half).loss->value, 1.05 * first.loss->value, 1e-9);
  EXPECT_TRUE(std::isnan(read(scale, swinging(1, 0.4), 1).loss->value)) << "it has a loss that is no number";
  const Learned without = read(scale, {});
  EXPECT_FALSE(without.loss);
  EXPECT_FALSE(without.why_no_loss.empty());
}

TEST(LossScale, ALossOfFewerSamplesIsPutOnTheLevelOfTheFirstRun) {
  Curve line;
  for (int i = 0; i < 40; ++i) {
    line.push_back({i * 4.0, 4 - 0.05 * i});
  }
  LossScale scale;
  const double level = read(scale, line).loss->value;
  Curve early = line;
  std::erase_if(early, [](const CurvePoint& point) { return point.samples > 80; });
  for (CurvePoint& point : early) {
    point.value *= 1.05;
  }
  EXPECT_NEAR(read(scale, early).loss->value, 1.05 * level, 1e-9);
}

TEST(LearnedBy, RunsAreReadUpToWhatAllHaveSeen) {
  const std::vector<LearningCurves> runs = {{falling(4000, 4, 1, 1), 0, {{"psnr", {{400, 25}, {800, 27}}}}},
                                            {falling(2000, 4, 1, 2), 0, {{"psnr", {{400, 24}}}}}};
  const std::vector<Learned> learned = learned_by(runs);
  ASSERT_TRUE(learned[0].loss && learned[1].loss);
  const auto pair = at_equal_samples(runs[0].loss, runs[1].loss);
  EXPECT_NEAR(learned[0].loss->value, pair->a, 1e-12);
  EXPECT_NEAR(learned[1].loss->value, pair->b, 1e-12);
  EXPECT_EQ(learned[0].metrics.at("psnr").value, 25);
  EXPECT_EQ(learned[1].metrics.at("psnr").samples, 400);
}

TEST(LearnedBy, AMetricThatOnlyOneReportsInTimeIsNotCompared) {
  const std::vector<Learned> learned =
      learned_by({{{}, 0, {{"acc", {{100, 0.5}}}}}, {{}, 0, {{"acc", {{400, 0.5}, {800, 0.6}}}}}});
  EXPECT_TRUE(learned[0].metrics.contains("acc"));
  EXPECT_FALSE(learned[1].metrics.contains("acc"));
}

}  // namespace
}  // namespace unidle::experiment
