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

TEST(Stats, StudentsTAgreesWithScipy) {
  EXPECT_NEAR(student_t(1), 12.7062, 1e-3);  // scipy.stats.t.ppf(0.975, degrees)
  EXPECT_NEAR(student_t(5), 2.5706, 1e-3);
  EXPECT_NEAR(student_t(9), 2.2622, 1e-3);
  EXPECT_NEAR(student_t(10), 2.2281, 4e-3);
  EXPECT_NEAR(student_t(30), 2.0423, 1e-3);
  EXPECT_NEAR(student_t(1000), 1.9623, 1e-4);
  EXPECT_THROW(student_t(0), Error);
}

TEST(Stats, ABootstrapCoversTheMeanAboutAsOftenAsItSays) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(10, 2);
  int covered = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values(30);
    for (double& value : values) {
      value = noise(random);
    }
    std::vector<double> drawn(values.size());
    const Interval interval = bootstrap([&](std::mt19937_64& draws) {
      for (double& value : drawn) {
        value = values[draws() % values.size()];
      }
      return mean(drawn);
    });
    covered += interval.low <= 10 && 10 <= interval.high ? 1 : 0;
  }
  EXPECT_GT(covered, kRounds * 0.87);
  EXPECT_LT(covered, kRounds);
}

TEST(Stats, AnIntervalIsTheMiddleOfTheDraws) {
  std::vector<double> draws;
  for (int i = 0; i <= 1000; ++i) {
    draws.push_back(i);
  }
  EXPECT_DOUBLE_EQ(percentile_interval(draws).low, 25);
  EXPECT_DOUBLE_EQ(percentile_interval(draws).high, 975);
  EXPECT_THROW(percentile_interval({}), Error);
}

}  // namespace
}  // namespace unidle
