// Unreadable samples: what each policy delivers, for any number of ranks and workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"
#include "unidle/data/testing/recording_source.h"

namespace unidle::data {
namespace {

using testing::RecordedSample;
using testing::RecordedSamples;
using testing::RecordingSource;
using testing::told_samples;

struct DamagedShape {
  std::int64_t items;
  std::int64_t per_item;
  std::int64_t batch;
  std::int64_t grain;
};

struct Delivered {
  std::vector<RecordedSamples> batches;
  std::vector<std::int64_t> places;
  std::int64_t skipped = 0;
};

class PolicyTest : public ::testing::TestWithParam<DamagedShape> {
 protected:
  void SetUp() override {
    for (std::int64_t item = 0; item < GetParam().items; ++item) {
      if (item % 5 == 1 || item % 7 == 3) {
        source_.damaged.insert(item);
      }
    }
  }

  Delivered deliver(const Source& source, ErrorPolicy policy, EpochEnd end, int workers, int rank, int world,
                    bool shuffle = true) const {
    Loader loader(source, {.batch = GetParam().batch,
                           .workers = workers,
                           .seed = 3,
                           .shuffle = shuffle,
                           .epoch_end = end,
                           .rank = rank,
                           .world = world,
                           .on_error = policy});
    Delivered delivered;
    const std::int64_t count = end == EpochEnd::kSpan ? 12 : 2 * loader.batches_per_epoch();
    for (std::int64_t i = 0; i < count; ++i) {
      const Batch batch = loader.next();
      delivered.batches.push_back(told_samples(batch));
      delivered.places.push_back(batch.places());
    }
    delivered.skipped = loader.skipped();
    return delivered;
  }

  /// Calls `check(clean, delivered)` with the output of each rank of each world for intact and for damaged data.
  template <typename Check>
  void for_each_rank(ErrorPolicy policy, const Check& check) const {
    const RecordingSource sound(GetParam().items, GetParam().per_item, GetParam().grain);
    for (const EpochEnd end : {EpochEnd::kSpan, EpochEnd::kShort, EpochEnd::kDrop}) {
      for (const int world : {1, 2, 3}) {
        std::set<std::vector<std::int64_t>> places;  // the same on all ranks
        for (int rank = 0; rank < world; ++rank) {
          const Delivered clean = deliver(sound, ErrorPolicy::kFail, end, 0, rank, world);
          const Delivered delivered = deliver(source_, policy, end, 0, rank, world);
          ASSERT_EQ(delivered.places, clean.places);
          places.insert(delivered.places);
          check(clean, delivered);
          for (const int workers : {1, 3}) {
            const Delivered again = deliver(source_, policy, end, workers, rank, world);
            ASSERT_EQ(again.batches, delivered.batches) << workers;
            ASSERT_EQ(again.skipped, delivered.skipped) << workers;
          }
        }
        ASSERT_EQ(places.size(), 1u) << "ranks with other batches in a world of " << world;
      }
    }
  }

  std::int64_t damaged_items(const RecordedSamples& samples) const {
    std::set<std::pair<std::int64_t, std::int64_t>> items;
    for (const RecordedSample& sample : samples) {
      if (source_.damaged.contains(sample.item)) {
        items.insert({sample.epoch, sample.item});
      }
    }
    return static_cast<std::int64_t>(items.size());
  }

  RecordingSource source_{GetParam().items, GetParam().per_item, GetParam().grain};
};

TEST_P(PolicyTest, SkipLeavesOutTheDamagedAndNothingElse) {
  for_each_rank(ErrorPolicy::kSkip, [&](const Delivered& clean, const Delivered& delivered) {
    RecordedSamples all;
    for (std::size_t i = 0; i < clean.batches.size(); ++i) {
      RecordedSamples expected = clean.batches[i];
      std::erase_if(expected, [&](const RecordedSample& sample) { return source_.damaged.contains(sample.item); });
      if (expected.empty()) {
        ASSERT_EQ(delivered.batches[i].size(), 1u) << i;
        ASSERT_FALSE(source_.damaged.contains(delivered.batches[i].front().item));
      } else {
        ASSERT_EQ(delivered.batches[i], expected) << i;
      }
      all.insert(all.end(), clean.batches[i].begin(), clean.batches[i].end());
    }
    if (GetParam().items % 6 == 0) {  // no rank repeats an item in an epoch
      ASSERT_EQ(delivered.skipped, damaged_items(all));
    }
  });
}

TEST_P(PolicyTest, ReplaceKeepsTheSizesAndTheSound) {
  for_each_rank(ErrorPolicy::kReplace, [&](const Delivered& clean, const Delivered& delivered) {
    RecordedSamples all;
    for (std::size_t i = 0; i < clean.batches.size(); ++i) {
      ASSERT_EQ(delivered.batches[i].size(), clean.batches[i].size()) << i;
      for (std::size_t row = 0; row < clean.batches[i].size(); ++row) {
        const RecordedSample& due = clean.batches[i][row];
        const RecordedSample& got = delivered.batches[i][row];
        ASSERT_FALSE(source_.damaged.contains(got.item));
        ASSERT_TRUE(got == due || source_.damaged.contains(due.item));
        ASSERT_EQ(got.part, due.part) << "parts of an item stay together";
      }
      all.insert(all.end(), clean.batches[i].begin(), clean.batches[i].end());
    }
    if (GetParam().items % 6 == 0) {
      ASSERT_EQ(delivered.skipped, damaged_items(all));
    }
  });
}

/// All damage is in the share of one rank, or is that whole share.
TEST_P(PolicyTest, RanksHaveEquallyManyBatchesWhereOneHasAllTheDamage) {
  for (const std::int64_t world : {2, 3}) {
    for (const bool whole_share : {false, true}) {
      RecordingSource source(GetParam().items / 6 * 6, GetParam().per_item, GetParam().grain);
      for (std::int64_t item = 1; item < source.items(); item += world) {
        if (whole_share || item % 5 != 0) {
          source.damaged.insert(item);
        }
      }
      for (const ErrorPolicy policy : {ErrorPolicy::kSkip, ErrorPolicy::kReplace}) {
        std::set<std::vector<std::size_t>> sizes;
        std::set<std::size_t> batches;
        std::set<std::vector<std::int64_t>> places;
        for (int rank = 0; rank < world; ++rank) {
          const Delivered delivered =
              deliver(source, policy, EpochEnd::kShort, 2, rank, static_cast<int>(world), false);
          std::vector<std::size_t> size;
          for (const RecordedSamples& batch : delivered.batches) {
            size.push_back(batch.size());
            ASSERT_FALSE(batch.empty());
            for (const RecordedSample& sample : batch) {
              ASSERT_FALSE(source.damaged.contains(sample.item));
            }
          }
          ASSERT_EQ(delivered.skipped > 0, rank == 1);
          sizes.insert(size);
          batches.insert(size.size());
          places.insert(delivered.places);
        }
        ASSERT_EQ(batches.size(), 1u) << "all ranks end together";
        ASSERT_EQ(places.size(), 1u) << "and stand at the same place of the order";
        ASSERT_EQ(sizes.size(), policy == ErrorPolicy::kReplace ? 1u : 2u) << "skip alone leaves out";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PolicyTest,
                         ::testing::Values(DamagedShape{60, 1, 10, 1}, DamagedShape{60, 1, 10, 4},
                                           DamagedShape{61, 1, 12, 64}, DamagedShape{60, 3, 14, 1},
                                           DamagedShape{54, 2, 8, 1}, DamagedShape{60, 4, 16, 1}),
                         [](const auto& shape) {
                           return "items" + std::to_string(shape.param.items) + "per" +
                                  std::to_string(shape.param.per_item) + "batch" + std::to_string(shape.param.batch) +
                                  "grain" + std::to_string(shape.param.grain);
                         });

TEST(SkipTest, ABatchOfWhichNothingIsLeftGetsTheNextSampleOfTheOrder) {
  for (const std::int64_t grain : {1, 8}) {
    RecordingSource source(40, 1, grain);
    source.damaged = {3, 8, 9, 10, 11, 12, 17};
    for (const int workers : {0, 1, 4}) {
      Loader loader(source, {.batch = 4, .workers = workers, .shuffle = false, .on_error = ErrorPolicy::kSkip});
      EXPECT_EQ(loader.next().samples(), 3);
      EXPECT_EQ(loader.next().samples(), 4);
      EXPECT_EQ(told_samples(loader.next()), (RecordedSamples{{0, 13, 0}}));
      EXPECT_EQ(told_samples(loader.next()), (RecordedSamples{{0, 13, 0}, {0, 14, 0}, {0, 15, 0}}));
      EXPECT_EQ(loader.skipped(), 6);
    }
  }
}

TEST(SkipTest, TheOnlyItemThatCanBeReadIsFoundInAnyOrder) {
  RecordingSource source(40, 1);
  for (std::int64_t item = 1; item < 40; ++item) {
    source.damaged.insert(item);
  }
  for (const ErrorPolicy policy : {ErrorPolicy::kSkip, ErrorPolicy::kReplace}) {
    Loader loader(source, {.batch = 4, .seed = 3, .on_error = policy});
    for (int batch = 0; batch < 30; ++batch) {
      for (const RecordedSample& sample : told_samples(loader.next())) {
        EXPECT_EQ(sample.item, 0);
      }
    }
  }
}

TEST(SkipTest, AllRanksFailWhereNothingCanBeRead) {
  RecordingSource source(12, 1);
  for (std::int64_t item = 0; item < 12; ++item) {
    source.damaged.insert(item);
  }
  for (const ErrorPolicy policy : {ErrorPolicy::kSkip, ErrorPolicy::kReplace}) {
    for (int rank = 0; rank < 3; ++rank) {
      Loader loader(source, {.batch = 2, .shuffle = false, .rank = rank, .world = 3, .on_error = policy});
      EXPECT_THROW(loader.next(), Error);
    }
  }
}

TEST(SkipTest, FailsWhereNothingCanBeRead) {
  RecordingSource source(6, 1);
  source.damaged = {0, 1, 2, 3, 4, 5};
  for (const int workers : {0, 3}) {
    Loader loader(source, {.batch = 4, .workers = workers, .shuffle = false, .on_error = ErrorPolicy::kSkip});
    for (int again = 0; again < 2; ++again) {
      try {
        loader.next();
        FAIL();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInput);
        EXPECT_EQ(error.subject(), "item 0") << "the earliest";
      }
    }
  }
}

TEST(SkipTest, SlotsThatGoRoundForgetWhatWasLeftOut) {
  RecordingSource source(12, 1);
  source.damaged = {1, 6};
  for (const int workers : {0, 2}) {
    Loader loader(source, {.batch = 3, .workers = workers, .shuffle = false, .on_error = ErrorPolicy::kSkip});
    for (int round = 0; round < 10; ++round) {
      for (const std::int64_t samples : {2, 3, 2, 3}) {
        EXPECT_EQ(loader.next().samples(), samples);
      }
    }
  }
}

}  // namespace
}  // namespace unidle::data
