#include "unidle/base/stats.h"

#include <gtest/gtest.h>

#include <random>

#include "unidle/base/error.h"

namespace unidle {
namespace {

TEST(Stats, OrderStatisticsAgreeWithNumpy) {
  const std::vector<double> values = {7, 1, 3, 10};
  EXPECT_DOUBLE_EQ(median(values), 5);
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 10);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 9.1);  // numpy.quantile
  EXPECT_DOUBLE_EQ(mean(values), 5.25);
  EXPECT_NEAR(standard_deviation(values), 4.0311288741, 1e-9);
}

TEST(Stats, NothingHasNoMean) { EXPECT_THROW(mean({}), Error); }

TEST(Stats, BootstrapCoversTheMeanAboutAsOftenAsItSays) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(10, 2);
  int covered = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values(30);
    for (double& value : values) {
      value = noise(random);
    }
    const Interval interval = bootstrap_mean(values, 0.95, 300);
    covered += interval.low <= 10 && 10 <= interval.high ? 1 : 0;
  }
  EXPECT_GT(covered, kRounds * 0.87);
  EXPECT_LT(covered, kRounds);
}

TEST(Stats, ARatioThatIsThereIsFoundAndRepeats) {
  const std::vector<double> slow = {10, 11, 9, 10, 10.5};
  const std::vector<double> fast = {30, 31, 29, 30, 30.5};
  const Interval first = bootstrap_ratio(slow, fast);
  EXPECT_GT(first.low, 2.5);
  EXPECT_LT(first.high, 3.5);
  const Interval second = bootstrap_ratio(slow, fast);
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
}

TEST(Stats, BlocksDropTheRest) {
  const std::vector<double> values = {1, 3, 5, 7, 100};
  EXPECT_EQ(block_means(values, 2), (std::vector<double>{2, 6}));
}

TEST(BootstrapMedian, OneOutlierDoesNotMoveIt) {
  const std::vector<double> values = {1.5, 1.51, 1.49, 1.5, 1.52, 0.4};
  const Interval interval = bootstrap_median(values);
  EXPECT_GT(interval.low, 0.9);
  EXPECT_LT(interval.high, 1.53);
  const std::vector<double> one = {2.0};
  EXPECT_EQ(bootstrap_median(one).low, 2.0);
  EXPECT_THROW(bootstrap_median({}), Error);
}

}  // namespace
}  // namespace unidle
