#include "unidle/data/run_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"
#include "unidle/data/subset.h"
#include "unidle/data/testing/number_source.h"

namespace unidle::data {
namespace {

struct Runs {
  std::int64_t items;
  std::int64_t run;
  std::int64_t window;
};

std::vector<std::int64_t> epoch_of(const RunOrder& order, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> items;
  for (std::int64_t index = 0; index < order.items(); ++index) {
    items.push_back(order.at(seed, epoch, index).item);
  }
  return items;
}

class RunOrderTest : public ::testing::TestWithParam<Runs> {
 protected:
  const RunOrder order{GetParam().items, GetParam().run, GetParam().window};
};

TEST_P(RunOrderTest, EveryEpochHasEachItemOnce) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(GetParam().items));
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
    std::vector<std::int64_t> items = epoch_of(order, 7, epoch);
    std::sort(items.begin(), items.end());
    ASSERT_EQ(items, all) << epoch;
  }
}

TEST_P(RunOrderTest, ItemsOfARunComeWithinOneWindow) {
  for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
    const std::vector<std::int64_t> items = epoch_of(order, 7, epoch);
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> reach;  // of each run: first and last place
    for (std::int64_t index = 0; index < order.items(); ++index) {
      const std::int64_t run = items[static_cast<std::size_t>(index)] / order.run();
      reach.try_emplace(run, index, index).first->second.second = index;
    }
    for (const auto& [run, places] : reach) {
      ASSERT_LT(places.second - places.first, order.window() * order.run()) << run;
    }
  }
}

TEST_P(RunOrderTest, RunsAreTheOnesThatTheItemsComeFrom) {
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<std::int64_t> items = epoch_of(order, 7, epoch);
    const std::int64_t runs = (order.items() + order.run() - 1) / order.run();
    std::int64_t index = 0;
    for (std::int64_t first = 0; first < runs; first += order.window()) {
      std::set<std::int64_t> expected;
      for (std::int64_t number = first; number < std::min(first + order.window(), runs); ++number) {
        const Order::Run run = order.run_at(7, epoch, number);
        for (std::int64_t item = run.begin; item < run.end; ++item) {
          expected.insert(item);
        }
      }
      std::set<std::int64_t> found;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        found.insert(items[static_cast<std::size_t>(index++)]);
      }
      ASSERT_EQ(found, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RunOrderTest,
                         ::testing::Values(Runs{64, 8, 3}, Runs{61, 8, 3}, Runs{7, 10, 2}, Runs{100, 1, 5},
                                           Runs{33, 4, 1}, Runs{33, 32, 2}, Runs{1, 1, 1}, Runs{50, 7, 100}),
                         [](const auto& shape) {
                           return "items" + std::to_string(shape.param.items) + "run" +
                                  std::to_string(shape.param.run) + "window" + std::to_string(shape.param.window);
                         });

TEST(RunOrderQualityTest, EpochsSeedsAndWindowsDiffer) {
  const RunOrder order(600, 10, 6);
  EXPECT_NE(epoch_of(order, 1, 0), epoch_of(order, 1, 1));
  EXPECT_NE(epoch_of(order, 1, 0), epoch_of(order, 2, 0));
  std::set<std::int64_t> first;
  for (std::int64_t epoch = 0; epoch < 400; ++epoch) {
    first.insert(order.at(1, epoch, 0).item / 10);
  }
  EXPECT_EQ(first.size(), 60u) << "any run may be the first";
}

TEST(RunOrderQualityTest, ABatchIsAsMixedAsItsWindow) {
  // Files sorted by class: classes in a batch vary as if drawn from `window` runs.
  constexpr std::int64_t kBatch = 64;
  const auto spread = [](const auto& item_at) {
    double sum = 0;
    for (std::int64_t batch = 0; batch < 150; ++batch) {
      double of_first_half = 0;
      for (std::int64_t i = 0; i < kBatch; ++i) {
        of_first_half += item_at(batch * kBatch + i) < 9600 / 2 ? 1 : 0;
      }
      sum += std::pow(of_first_half / kBatch - 0.5, 2);
    }
    return sum / 150;
  };
  const double whole = spread([](std::int64_t index) { return shuffled_index(3, 0, index, 9600); });
  EXPECT_NEAR(whole, 0.25 / kBatch, 0.25 / kBatch * 0.4);
  for (const std::int64_t window : {8, 24}) {
    const RunOrder order(9600, 64, window);
    double mean = 0;
    for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
      mean += spread([&](std::int64_t index) { return order.at(seed, 0, index).item; }) / 6;
    }
    const double expected =
        0.25 / kBatch + 0.25 / static_cast<double>(window) * (1 - static_cast<double>(window) / 150);
    EXPECT_NEAR(mean, expected, expected * 0.5) << window;
  }
}

TEST(RunOrderQualityTest, RefusesNumbersBelowOne) {
  for (const Runs& runs : {Runs{0, 1, 1}, Runs{1, 0, 1}, Runs{1, 1, 0}}) {
    EXPECT_THROW(RunOrder(runs.items, runs.run, runs.window), Error);
  }
}

/// Records which runs are announced.
class AnnouncedSource final : public testing::NumberSource {
 public:
  explicit AnnouncedSource(std::int64_t items, std::int64_t run = 0) : NumberSource(items, 1), run_(run) {}
  std::int64_t run() const override { return run_; }
  void will_need(std::int64_t begin, std::int64_t end) const override {
    for (std::int64_t item = begin; item < end; ++item) {
      ++told[item];
    }
  }
  mutable std::map<std::int64_t, int> told;

 private:
  std::int64_t run_;
};

TEST(RunOrderLoaderTest, AnItemIsReadAheadOnceAnEpochBeforeItComes) {
  constexpr std::int64_t kItems = 61;
  const RunOrder order(kItems, 8, 2);
  for (const int world : {1, 2, 3}) {
    for (int rank = 0; rank < world; ++rank) {
      AnnouncedSource source(kItems);
      Loader loader(source, {.batch = 1, .rank = rank, .world = world, .order = &order});
      for (std::int64_t i = 0; i < 3 * kItems / world; ++i) {
        const std::int64_t epoch = i / ((kItems + world - 1) / world);
        const Batch batch = loader.next();
        std::int64_t told[3];
        std::memcpy(told, batch.field(0), sizeof told);
        ASSERT_GE(source.told[told[1]], epoch + 1) << "of rank " << rank << " of " << world;
        // The next window may be in the next epoch; when ranks do not divide an epoch evenly, its wrap announces it
        // again.
        ASSERT_LE(source.told[told[1]], world == 1 ? epoch + 2 : 2 * epoch + 3);
      }
    }
  }
}

TEST(RunOrderLoaderTest, ASubsetInTheOrderOfTheRunsIsReadAheadToo) {
  constexpr std::int64_t kItems = 80;
  AnnouncedSource source(kItems, 8);
  std::vector<std::int64_t> items;
  for (std::int64_t item = 0; item < kItems; ++item) {
    if (item % 3 != 0 && item / 8 != 4) {
      items.push_back(item);
    }
  }
  std::swap(items[0], items[1]);  // within a run, so it makes no difference
  const Subset subset(source, items);
  EXPECT_EQ(subset.run(), 6) << "48 items of 9 runs";
  const RunOrder order(subset.items(), subset.run(), 2);
  Loader loader(subset, {.batch = 1, .order = &order});
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < subset.items(); ++i) {
    const Batch batch = loader.next();
    std::int64_t told[3];
    std::memcpy(told, batch.field(0), sizeof told);
    ASSERT_GE(source.told[told[1]], 1) << told[1];
    seen.insert(told[1]);
  }
  EXPECT_EQ(seen, std::set<std::int64_t>(items.begin(), items.end()));
  for (std::int64_t item = 32; item < 40; ++item) {
    EXPECT_EQ(source.told[item], 0) << "of the run that the subset has nothing of";
  }
  EXPECT_EQ(Subset(subset, {0, 1, 20, 40}).run(), 2) << "a subset of a subset: four items of three runs";
}

TEST(RunOrderLoaderTest, ASubsetInAnotherOrderHasNoRuns) {
  const AnnouncedSource source(80, 8);
  EXPECT_EQ(Subset(source, {9, 3}).run(), 0);
  EXPECT_EQ(Subset(source, {}).run(), 0);
  EXPECT_EQ(Subset(testing::NumberSource(80, 1), {3, 9}).run(), 0);
}

TEST(RunOrderLoaderTest, TheOrderIsTheSameForAnyWorkersAndStarts) {
  const testing::NumberSource source(61, 1);
  const RunOrder order(61, 8, 2);
  const auto deliver = [&](int workers, std::int64_t start, int batches) {
    Loader loader(source, {.batch = 5, .workers = workers, .seed = 4, .start_sample = start, .order = &order});
    return testing::take(loader, batches);
  };
  const std::vector<std::string> expected = deliver(0, 0, 40);
  EXPECT_EQ(deliver(3, 0, 40), expected);
  for (std::int64_t start = 0; start < 120; start += 7) {
    EXPECT_EQ(deliver(2, start, 5), std::vector<std::string>(expected.begin() + start, expected.begin() + start + 25));
  }
}

}  // namespace
}  // namespace unidle::data
