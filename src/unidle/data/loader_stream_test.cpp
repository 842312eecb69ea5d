// Which samples a loader delivers in which batches: ends of epochs, ranks, gathered rows, ragged fields, and memory
// taken out of batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"
#include "unidle/data/testing/counting_allocator.h"
#include "unidle/data/testing/recording_source.h"

namespace unidle::data {
namespace {

using testing::RecordedSample;
using testing::RecordedSamples;
using testing::RecordingSource;
using testing::told_samples;

/// Batches of the stream's first `epochs` epochs, including the one it starts in.
std::vector<RecordedSamples> take_epochs(Loader& loader, int epochs) {
  const std::int64_t count = loader.batches_in_first_epoch() + (epochs - 1) * loader.batches_per_epoch();
  std::vector<RecordedSamples> batches;
  for (std::int64_t i = 0; i < count; ++i) {
    batches.push_back(told_samples(loader.next()));
  }
  return batches;
}

RecordedSamples joined(const std::vector<RecordedSamples>& batches) {
  RecordedSamples all;
  for (const RecordedSamples& batch : batches) {
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

/// The order seen by a single rank.
RecordedSamples whole_epoch(const Source& source, std::int64_t epoch, std::uint64_t seed = 3) {
  RecordedSamples samples;
  for (std::int64_t index = 0; index < source.items(); ++index) {
    for (std::int64_t part = 0; part < source.samples_per_item(); ++part) {
      samples.push_back({epoch, shuffled_index(seed, epoch, index, source.items()), part});
    }
  }
  return samples;
}

struct StreamShape {
  std::int64_t items;
  std::int64_t per_item;
  std::int64_t batch;
  std::int64_t grain;
};

class EpochEndTest : public ::testing::TestWithParam<StreamShape> {
 protected:
  const RecordingSource source{GetParam().items, GetParam().per_item, GetParam().grain};
  std::int64_t samples() const { return GetParam().items * GetParam().per_item; }

  std::vector<RecordedSamples> epochs(EpochEnd end, int workers, std::int64_t start, int count) const {
    Loader loader(source,
                  {.batch = GetParam().batch, .workers = workers, .seed = 3, .start_sample = start, .epoch_end = end});
    return take_epochs(loader, count);
  }
};

TEST_P(EpochEndTest, ShortBatchesEndWithTheirEpoch) {
  for (const int workers : {0, 1, 3}) {
    const std::vector<RecordedSamples> batches = epochs(EpochEnd::kShort, workers, 0, 3);
    RecordedSamples expected;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      const RecordedSamples one = whole_epoch(source, epoch);
      expected.insert(expected.end(), one.begin(), one.end());
    }
    EXPECT_EQ(joined(batches), expected) << workers;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const auto in_epoch = static_cast<std::int64_t>(i) % (static_cast<std::int64_t>(batches.size()) / 3);
      EXPECT_EQ(static_cast<std::int64_t>(batches[i].size()),
                std::min(GetParam().batch, samples() - in_epoch * GetParam().batch));
    }
  }
}

TEST_P(EpochEndTest, DroppedIsWhatFillsNoBatch) {
  if (GetParam().batch > samples()) {
    EXPECT_THROW(epochs(EpochEnd::kDrop, 0, 0, 1), Error);
    return;
  }
  for (const int workers : {0, 1, 3}) {
    const std::vector<RecordedSamples> batches = epochs(EpochEnd::kDrop, workers, 0, 3);
    RecordedSamples expected;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      const RecordedSamples one = whole_epoch(source, epoch);
      expected.insert(expected.end(), one.begin(), one.begin() + samples() / GetParam().batch * GetParam().batch);
    }
    EXPECT_EQ(joined(batches), expected) << workers;
  }
}

TEST_P(EpochEndTest, ResumesAtAnySampleOfAnyEpoch) {
  for (const EpochEnd end : {EpochEnd::kShort, EpochEnd::kDrop}) {
    if (end == EpochEnd::kDrop && GetParam().batch > samples()) {
      continue;
    }
    for (std::int64_t start = 0; start < 2 * samples(); ++start) {
      const std::int64_t epoch = start / samples();
      const RecordedSamples rest = whole_epoch(source, epoch);
      RecordedSamples expected(rest.begin() + start % samples(), rest.end());
      if (end == EpochEnd::kDrop) {
        expected.resize(expected.size() / static_cast<std::size_t>(GetParam().batch) *
                        static_cast<std::size_t>(GetParam().batch));
      }
      RecordedSamples next = whole_epoch(source, epoch + 1);
      if (end == EpochEnd::kDrop) {
        next.resize(next.size() / static_cast<std::size_t>(GetParam().batch) *
                    static_cast<std::size_t>(GetParam().batch));
      }
      expected.insert(expected.end(), next.begin(), next.end());
      for (const int workers : {0, 2}) {
        ASSERT_EQ(joined(epochs(end, workers, start, 2)), expected) << "from " << start;
      }
    }
  }
}

TEST_P(EpochEndTest, ABatchTellsItsEpochAndWhatCameBefore) {
  Loader loader(source, {.batch = GetParam().batch, .workers = 2, .seed = 3, .epoch_end = EpochEnd::kShort});
  std::int64_t delivered = 0;
  for (std::int64_t i = 0; i < 2 * loader.batches_per_epoch(); ++i) {
    const Batch batch = loader.next();
    EXPECT_EQ(batch.epoch(), delivered / samples());
    EXPECT_EQ(batch.epoch_offset(), delivered % samples());
    EXPECT_EQ(batch.first_sample(), delivered);
    std::int64_t items = 0;
    for (const ItemTiming& timing : batch.timings()) {
      items += timing.items;
    }
    EXPECT_LE(items, batch.samples());
    delivered += batch.samples();
  }
}

TEST_P(EpochEndTest, EveryWorldSharesOneOrder) {
  const std::int64_t items = GetParam().items;
  for (const EpochEnd end : {EpochEnd::kSpan, EpochEnd::kShort, EpochEnd::kDrop}) {
    for (const int world : {1, 2, 3, 5}) {
      const std::int64_t share = end == EpochEnd::kDrop ? items / world : (items + world - 1) / world;
      if (share * GetParam().per_item < GetParam().batch) {
        continue;
      }
      const RecordedSamples order = whole_epoch(source, 0);
      for (int rank = 0; rank < world; ++rank) {
        RecordedSamples expected;
        for (std::int64_t k = 0; k < share; ++k) {
          const auto index = static_cast<std::size_t>((k * world + rank) % items * GetParam().per_item);
          expected.insert(expected.end(), order.begin() + static_cast<std::ptrdiff_t>(index),
                          order.begin() + static_cast<std::ptrdiff_t>(index) + GetParam().per_item);
        }
        Loader loader(source, {.batch = GetParam().batch,
                               .workers = rank % 3,
                               .seed = 3,
                               .epoch_end = end,
                               .rank = rank,
                               .world = world});
        RecordedSamples got;
        while (got.size() + static_cast<std::size_t>(GetParam().batch) <= expected.size()) {
          const RecordedSamples batch = told_samples(loader.next());
          got.insert(got.end(), batch.begin(), batch.end());
        }
        expected.resize(got.size());
        EXPECT_EQ(got, expected) << "rank " << rank << " of " << world;
      }
    }
  }
}

TEST_P(EpochEndTest, AnotherWorldGoesOnWhereOneStopped) {
  if (GetParam().per_item != 1) {
    return;
  }
  const RecordedSamples order = whole_epoch(source, 0);
  for (std::int64_t start = 0; start < samples(); ++start) {
    for (const int world : {2, 3}) {
      std::multiset<std::int64_t> seen;
      for (int rank = 0; rank < world; ++rank) {
        Loader loader(source, {.batch = GetParam().batch,
                               .seed = 3,
                               .start_sample = start,
                               .epoch_end = EpochEnd::kShort,
                               .rank = rank,
                               .world = world});
        for (const RecordedSample& sample : joined(take_epochs(loader, 1))) {
          seen.insert(sample.item);
        }
      }
      for (std::size_t index = 0; index < order.size(); ++index) {
        if (static_cast<std::int64_t>(index) >= start) {
          ASSERT_GE(seen.count(order[index].item), 1u) << start;
        }
      }
      const std::int64_t left = samples() - start;
      ASSERT_EQ(static_cast<std::int64_t>(seen.size()), (left + world - 1) / world * world);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, EpochEndTest,
                         ::testing::Values(StreamShape{10, 1, 4, 1}, StreamShape{12, 1, 4, 3}, StreamShape{23, 1, 5, 2},
                                           StreamShape{23, 1, 7, 64}, StreamShape{7, 3, 4, 1}, StreamShape{5, 4, 4, 1},
                                           StreamShape{3, 8, 3, 1}, StreamShape{1, 1, 5, 1}, StreamShape{4, 11, 2, 1},
                                           StreamShape{2, 5, 20, 1}),
                         [](const auto& shape) {
                           return "items" + std::to_string(shape.param.items) + "per" +
                                  std::to_string(shape.param.per_item) + "batch" + std::to_string(shape.param.batch) +
                                  "grain" + std::to_string(shape.param.grain);
                         });

TEST(LoaderGrainTest, AnItemThatFailsIsNamedAndReplacedAmongMany) {
  RecordingSource source(40, 1, 8);
  source.damaged = {13, 14, 30};
  for (const int workers : {0, 2}) {
    Loader failing(source, {.batch = 20, .workers = workers, .shuffle = false});
    try {
      failing.next();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.subject(), "item 13");
    }
    Loader loader(source, {.batch = 20, .workers = workers, .shuffle = false, .on_error = ErrorPolicy::kReplace});
    const RecordedSamples first = told_samples(loader.next());
    EXPECT_EQ(first[12].item, 12);
    EXPECT_EQ(first[13].item, 15);
    EXPECT_EQ(first[14].item, 15);
    EXPECT_EQ(first[15].item, 15);
    EXPECT_EQ(loader.skipped(), 2);
    loader.next();
    EXPECT_EQ(loader.skipped(), 3);
  }
}

TEST(LoaderRankTest, RefusesRanksOutsideOfTheWorld) {
  const RecordingSource source(10, 1);
  for (const auto& [rank, world] : {std::pair{-1, 2}, {2, 2}, {0, 0}}) {
    EXPECT_THROW(Loader(source, {.rank = rank, .world = world}), Error);
  }
  const RecordingSource several(10, 4);
  EXPECT_THROW(Loader(several, {.start_sample = 6, .rank = 0, .world = 2}), Error);
}

/// Item i repeats the number i (i % 7 + 1) times, padded with -1.
class RunSource final : public Source {
 public:
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return 50; }
  std::int64_t extent(std::int64_t item, std::size_t) const override { return item % 7 + 1; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override {
    if (damaged.contains(request.item)) {
      throw Error(ErrorCode::kInput, "item", "is damaged");
    }
    std::vector<std::int64_t> run(samples[0][0].size() / sizeof(std::int64_t), -1);
    EXPECT_GE(static_cast<std::int64_t>(run.size()), extent(request.item, 0));
    std::fill_n(run.begin(), extent(request.item, 0), request.item);
    std::memcpy(samples[0][0].data(), run.data(), samples[0][0].size());
    std::memcpy(samples[0][1].data(), &request.item, sizeof request.item);
    return 0;
  }
  std::set<std::int64_t> damaged;

 private:
  std::vector<Field> fields_{{"run", DType::kI64, {7}, true}, {"item", DType::kI64, {}}};
};

TEST(LoaderRaggedTest, ABatchIsAsLongAsItsLongestSample) {
  for (const std::set<std::int64_t>& damaged : {std::set<std::int64_t>{}, std::set<std::int64_t>{6, 13, 20, 8}}) {
    RunSource source;
    source.damaged = damaged;
    std::vector<std::vector<std::int64_t>> expected;
    for (const int workers : {0, 1, 3}) {
      Loader loader(source, {.batch = 3, .workers = workers, .seed = 4, .on_error = ErrorPolicy::kReplace});
      std::vector<std::vector<std::int64_t>> all;
      for (int i = 0; i < 40; ++i) {
        const Batch batch = loader.next();
        const std::int64_t extent = batch.extent(0);
        ASSERT_LE(extent, 7);
        ASSERT_EQ(batch.extents(0).size(), 3u);
        ASSERT_TRUE(batch.extents(1).empty());
        const auto* items = reinterpret_cast<const std::int64_t*>(batch.field(1));
        const auto* runs = reinterpret_cast<const std::int64_t*>(batch.field(0));
        std::int64_t longest = 0;
        for (std::int64_t row = 0; row < 3; ++row) {
          longest = std::max(longest, source.extent(items[row], 0));
          ASSERT_EQ(batch.extents(0)[static_cast<std::size_t>(row)], source.extent(items[row], 0));
          for (std::int64_t at = 0; at < extent; ++at) {
            ASSERT_EQ(runs[row * extent + at], at < source.extent(items[row], 0) ? items[row] : -1);
          }
        }
        if (damaged.empty()) {
          ASSERT_EQ(extent, longest);
        } else {
          ASSERT_GE(extent, longest);
        }
        all.emplace_back(runs, runs + 3 * extent);
      }
      expected = expected.empty() ? all : expected;
      EXPECT_EQ(all, expected);
    }
  }
}

TEST(LoaderRaggedTest, WhatIsLeftOutTakesItsExtentWithIt) {
  RunSource source;
  source.damaged = {6, 13, 20, 8};
  for (const int workers : {0, 3}) {
    Loader loader(source, {.batch = 5, .workers = workers, .seed = 4, .on_error = ErrorPolicy::kSkip});
    std::int64_t left_out = 0;
    for (int i = 0; i < 40; ++i) {
      const Batch batch = loader.next();
      const auto* items = reinterpret_cast<const std::int64_t*>(batch.field(1));
      const auto* runs = reinterpret_cast<const std::int64_t*>(batch.field(0));
      ASSERT_EQ(static_cast<std::int64_t>(batch.extents(0).size()), batch.samples());
      for (std::int64_t row = 0; row < batch.samples(); ++row) {
        ASSERT_EQ(batch.extents(0)[static_cast<std::size_t>(row)], source.extent(items[row], 0));
        ASSERT_EQ(runs[row * batch.extent(0)], items[row]);
      }
      left_out += batch.places() - batch.samples();
    }
    EXPECT_EQ(left_out, 4 * 4) << "four of fifty items, four epochs";
  }
}

TEST(LoaderTakeTest, TakenMemoryKeepsItsBytesAndOutlivesTheLoader) {
  const RecordingSource source(10, 1);
  testing::CountingAllocator memory;
  std::vector<std::byte*> taken;
  std::vector<RecordedSamples> told;
  std::size_t bytes = 0;
  {
    Loader loader(source, {.batch = 4, .workers = 2, .seed = 3, .allocator = &memory});
    bytes = loader.field_bytes(0);
    EXPECT_EQ(bytes, 4 * sizeof(RecordedSample));
    for (int i = 0; i < 30; ++i) {  // far more than there are slots
      Batch batch = loader.next();
      told.push_back(told_samples(batch));
      taken.push_back(batch.take()[0]);
    }
  }
  EXPECT_EQ(memory.out(), taken.size());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(std::memcmp(taken[i], told[i].data(), bytes), 0);
    memory.release(taken[i], bytes);
  }
  EXPECT_EQ(memory.out(), 0u);
}

TEST(LoaderWaitTest, WaitsForTheBatchThatIsDue) {
  const RecordingSource source(10, 1);
  Loader loader(source, {.batch = 4, .workers = 1});
  while (!loader.wait(std::chrono::milliseconds(1))) {
  }
  EXPECT_TRUE(loader.ready());
  EXPECT_EQ(loader.next().samples(), 4);
  Loader own(source, {.batch = 4});
  EXPECT_TRUE(own.wait(std::chrono::nanoseconds(0)));
}

}  // namespace
}  // namespace unidle::data
