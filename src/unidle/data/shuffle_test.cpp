#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "unidle/data/loader.h"
#include "unidle/data/random.h"

namespace unidle::data {
namespace {

std::vector<std::int64_t> order(std::uint64_t seed, std::int64_t epoch, std::int64_t n) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    result[static_cast<std::size_t>(i)] = shuffled_index(seed, epoch, i, n);
  }
  return result;
}

bool is_permutation(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<std::int64_t>(i)) {
      return false;
    }
  }
  return true;
}

TEST(ShuffleTest, IsABijectionForEverySize) {
  for (std::int64_t n = 1; n <= 600; ++n) {
    ASSERT_TRUE(is_permutation(order(7, n % 5, n))) << n;
  }
  for (const std::int64_t n : {1023, 1024, 1025, 65535, 65536, 65537, 100003}) {
    EXPECT_TRUE(is_permutation(order(3, 1, n))) << n;
  }
}

TEST(ShuffleTest, StaysInRangeForHugeSizes) {
  const std::int64_t n = (std::int64_t{1} << 40) + 12345;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t index = shuffled_index(1, 2, n - 1 - i, n);
    ASSERT_GE(index, 0);
    ASSERT_LT(index, n);
  }
}

TEST(ShuffleTest, ManyAtOnceAreWhatTheyAreOneByOne) {
  for (const std::int64_t n : {1, 2, 3, 5, 64, 65, 1000, 65537}) {
    for (const std::size_t count : {0, 1, 7, 8, 63, 64, 65, 200}) {
      std::vector<std::int64_t> indices(count);
      for (std::size_t i = 0; i < count; ++i) {
        indices[i] = static_cast<std::int64_t>(i * 3) % n;
      }
      const std::vector<std::int64_t> whole = order(7, 2, n);
      std::vector<std::int64_t> expected;
      for (const std::int64_t index : indices) {
        expected.push_back(whole[static_cast<std::size_t>(index)]);
      }
      shuffle_indices(7, 2, n, indices);
      EXPECT_EQ(indices, expected) << count << " of " << n;
    }
  }
}

TEST(ShuffleTest, DiffersByEpochAndSeed) {
  EXPECT_NE(order(1, 0, 1000), order(1, 1, 1000));
  EXPECT_NE(order(1, 0, 1000), order(2, 0, 1000));
  EXPECT_EQ(order(1, 5, 1000), order(1, 5, 1000));
}

TEST(ShuffleTest, ValuesAreStable) {
  // Records and resumed runs depend on these values: changing them changes what every run delivers.
  EXPECT_EQ(order(0, 0, 10), (std::vector<std::int64_t>{8, 3, 4, 9, 7, 5, 6, 2, 1, 0}));
  EXPECT_EQ(order(42, 3, 7), (std::vector<std::int64_t>{3, 0, 1, 4, 6, 2, 5}));
  EXPECT_EQ(shuffled_index(1, 2, 123456789, 1000000007), 754684639);
}

TEST(ShuffleTest, EveryItemComesFirstAboutAsOften) {
  constexpr std::int64_t kItems = 12;
  constexpr std::int64_t kEpochs = 12000;
  for (const std::int64_t position : {0, 5, 11}) {
    std::vector<double> count(kItems);
    for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      ++count[static_cast<std::size_t>(shuffled_index(9, epoch, position, kItems))];
    }
    double chi_squared = 0;
    for (const double seen : count) {
      chi_squared += (seen - 1000) * (seen - 1000) / 1000;
    }
    EXPECT_LT(chi_squared, 31.3) << position;  // 99.9 % quantile with 11 degrees of freedom
  }
}

TEST(ShuffleTest, NeighboursArePulledApart) {
  // In a random permutation few neighbours stay neighbours: 2 of n on average.
  int neighbours = 0;
  const std::vector<std::int64_t> values = order(5, 0, 10000);
  for (std::size_t i = 1; i < values.size(); ++i) {
    neighbours += std::abs(values[i] - values[i - 1]) == 1 ? 1 : 0;
  }
  EXPECT_LT(neighbours, 15);
}

TEST(CounterRandomTest, IsAFunctionOfItsKey) {
  EXPECT_EQ((CounterRandom{1, 2, 3}.next()), (CounterRandom{1, 2, 3}.next()));
  EXPECT_NE((CounterRandom{1, 2, 3}.next()), (CounterRandom{1, 3, 2}.next()));
  EXPECT_NE((CounterRandom{0}.next()), (CounterRandom{0, 0}.next()));
  EXPECT_EQ((CounterRandom{1, 2, 3}.next()), 1116932127162239055ULL);
}

TEST(CounterRandomTest, BelowCoversItsRange) {
  CounterRandom random{11};
  std::vector<int> count(10);
  for (int i = 0; i < 10000; ++i) {
    ++count.at(random.below(10));
  }
  for (const int seen : count) {
    EXPECT_NEAR(seen, 1000, 150);  // five standard deviations
  }
}

}  // namespace
}  // namespace unidle::data
