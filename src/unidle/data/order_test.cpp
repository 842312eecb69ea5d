#include "unidle/data/order.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"

namespace unidle::data {
namespace {

/// A sample contains its item and the seed it was made with.
class NumberedSource final : public Source {
 public:
  explicit NumberedSource(std::int64_t items) : items_(items) {}
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return items_; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override {
    const std::int64_t told[2] = {request.item, static_cast<std::int64_t>(request.seed)};
    std::memcpy(samples[0][0].data(), told, sizeof told);
    return 1;
  }

 private:
  std::vector<Field> fields_{{"told", DType::kI64, {2}}};
  std::int64_t items_;
};

using Told = std::vector<std::array<std::int64_t, 2>>;

std::vector<Told> some_batches(const Source& source, LoaderOptions options, int count) {
  Loader loader(source, options);
  std::vector<Told> batches;
  for (int i = 0; i < count; ++i) {
    const Batch batch = loader.next();
    Told told(static_cast<std::size_t>(batch.samples()));
    std::memcpy(told.data(), batch.field(0), told.size() * sizeof told[0]);
    batches.push_back(told);
  }
  return batches;
}

Told in_one(const std::vector<Told>& batches) {
  Told all;
  for (const Told& batch : batches) {
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(WeightedOrderTest, ItemsComeAsOftenAsTheyWeigh) {
  const std::vector<double> weights = {0, 1, 0, 0, 3, 6, 0};
  const WeightedOrder order(weights);
  std::map<std::int64_t, int> counts;
  constexpr int kDraws = 30000;
  for (int index = 0; index < kDraws; ++index) {
    ++counts[order.at(5, index / 7, index % 7).item];
  }
  EXPECT_EQ(counts.size(), 3U);
  for (const auto& [item, count] : counts) {
    const double expected = kDraws * weights[static_cast<std::size_t>(item)] / 10;
    EXPECT_NEAR(count, expected, 5 * std::sqrt(expected)) << item;
  }
}

TEST(WeightedOrderTest, AnItemThatComesTwiceIsDrawnAnew) {
  const WeightedOrder order(std::vector<double>{1, 0});
  EXPECT_NE(order.at(1, 0, 0).seed, order.at(1, 0, 1).seed);
  EXPECT_NE(order.at(1, 0, 0).seed, order.at(1, 1, 0).seed);
  EXPECT_EQ(order.at(1, 3, 1).seed, order.at(1, 3, 1).seed);
}

TEST(WeightedOrderTest, RefusesWhatIsNoWeight) {
  for (const std::vector<double>& weights :
       std::vector<std::vector<double>>{{}, {0, 0}, {1, -1}, {1, NAN}, {1, INFINITY}, {1e308, 1e308}}) {
    EXPECT_THROW(WeightedOrder{weights}, Error);
  }
}

std::vector<std::int64_t> groups_of(std::int64_t items) {
  std::vector<std::int64_t> groups;
  for (std::int64_t item = 0; item < items; ++item) {
    groups.push_back(item % 7 == 0 ? 2 : item % 3 == 0 ? 0 : 4);
  }
  return groups;
}

TEST(GroupedOrderTest, ABatchIsOfOneGroupAndAnEpochHasAllItems) {
  const std::vector<std::int64_t> groups = groups_of(50);
  const NumberedSource source(50);
  for (const bool drop_last : {false, true}) {
    const GroupedOrder order(groups, 4, true, drop_last);
    LoaderOptions options{.batch = 4, .workers = 2, .seed = 3, .order = &order};
    options.epoch_end = drop_last ? EpochEnd::kDrop : EpochEnd::kShort;
    std::set<std::int64_t> seen;
    const auto epoch = some_batches(source, options, static_cast<int>(order.items() / 4));
    std::vector<std::int64_t> of_batches;
    for (const Told& batch : epoch) {
      EXPECT_EQ(batch.size(), 4U);
      of_batches.push_back(groups[static_cast<std::size_t>(batch[0][0])]);
      for (const auto& [item, seed] : batch) {
        EXPECT_EQ(groups[static_cast<std::size_t>(item)], of_batches.back());
        const bool again = !seen.insert(item).second;
        EXPECT_TRUE(!again || !drop_last);
      }
    }
    EXPECT_EQ(seen.size(), drop_last ? static_cast<std::size_t>(order.items()) : 50U);
    EXPECT_FALSE(std::is_sorted(of_batches.begin(), of_batches.end()));
  }
}

TEST(GroupedOrderTest, WithoutShufflingItemsComeInTheirOrder) {
  const GroupedOrder order(std::vector<std::int64_t>{1, 0, 1, 1}, 2, false, false);
  std::vector<std::int64_t> items;
  for (std::int64_t index = 0; index < order.items(); ++index) {
    items.push_back(order.at(1, 0, index).item);
  }
  EXPECT_EQ(items, (std::vector<std::int64_t>{1, 1, 0, 2, 3, 0}));
}

TEST(GroupedOrderTest, RefusesWhatMakesNoBatches) {
  EXPECT_THROW(GroupedOrder(std::vector<std::int64_t>{0, 2}, 1, true, false), Error);
  EXPECT_THROW(GroupedOrder(std::vector<std::int64_t>{0, -1}, 1, true, false), Error);
  EXPECT_THROW(GroupedOrder(std::vector<std::int64_t>{0, 1}, 2, true, true), Error);
  EXPECT_THROW(GroupedOrder({}, 2, true, false), Error);
  const GroupedOrder order(groups_of(50), 4, true, false);
  EXPECT_THROW(Loader(NumberedSource(49), {.batch = 4, .order = &order}), Error);
  EXPECT_THROW(Loader(NumberedSource(50), {.batch = 5, .order = &order}), Error);
  EXPECT_THROW(Loader(NumberedSource(50), {.batch = 4, .start_sample = 2, .order = &order}), Error);
}

TEST(OrderTest, IsTheSameForAnyWorkersRanksAndStart) {
  const NumberedSource source(50);
  std::vector<double> weights(50, 1.0);
  weights[7] = 20;
  const WeightedOrder weighted(weights);
  const GroupedOrder grouped(groups_of(50), 4, true, false);
  for (const Order* order : {static_cast<const Order*>(&weighted), static_cast<const Order*>(&grouped)}) {
    LoaderOptions options{.batch = 4, .seed = 9, .epoch_end = EpochEnd::kShort, .order = order};
    const Told expected = in_one(some_batches(source, options, 30));
    for (const int workers : {1, 3}) {
      LoaderOptions threads = options;
      threads.workers = workers;
      EXPECT_EQ(in_one(some_batches(source, threads, 30)), expected);
    }
    for (const std::int64_t start : {4, 8, 48, 60}) {
      LoaderOptions later = options;
      later.start_sample = start;
      const Told rest = in_one(some_batches(source, later, 8));
      const std::int64_t epoch = order->items();
      // A short batch at the end of an epoch shortens the first stream by its missing samples.
      EXPECT_TRUE(start >= epoch || std::equal(rest.begin(), rest.begin() + std::min<std::int64_t>(32, epoch - start),
                                               expected.begin() + start));
    }
    for (const int world : {2, 3}) {
      std::vector<std::vector<Told>> ranks;
      for (int rank = 0; rank < world; ++rank) {
        LoaderOptions shared = options;
        shared.rank = rank;
        shared.world = world;
        ranks.push_back(some_batches(source, shared, 4));
      }
      Told together;
      const bool blocks = order->block() > 1;
      for (std::size_t k = 0; k < 4; ++k) {
        for (std::size_t j = 0; j < 4 * static_cast<std::size_t>(world); ++j) {
          const auto rank = blocks ? j / 4 : j % static_cast<std::size_t>(world);
          together.push_back(ranks[rank][k][blocks ? j % 4 : j / static_cast<std::size_t>(world)]);
        }
      }
      const auto count = std::min<std::int64_t>(static_cast<std::int64_t>(together.size()), order->items());
      EXPECT_TRUE(std::equal(together.begin(), together.begin() + count, expected.begin())) << world;
    }
  }
}

}  // namespace
}  // namespace unidle::data
