#include "unidle/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <thread>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/data/detail/stages.h"
#include "unidle/data/testing/number_source.h"

namespace unidle::data {
namespace {

using testing::item_of;
using testing::kDataBytes;
using testing::NumberSource;
using testing::take;
using testing::told;

struct Shape {
  std::int64_t items;
  std::int64_t per_item;
  std::int64_t batch;
};

class LoaderOrderTest : public ::testing::TestWithParam<Shape> {
 protected:
  static std::vector<std::string> deliver(int workers, std::int64_t start, int batches, bool shuffle = true) {
    const NumberSource source(GetParam().items, GetParam().per_item);
    Loader loader(
        source, {.batch = GetParam().batch, .workers = workers, .seed = 5, .shuffle = shuffle, .start_sample = start});
    return take(loader, batches);
  }
};

TEST_P(LoaderOrderTest, SampleSIsIndexSModNOfEpochSDivN) {
  const auto [items, per_item, batch] = GetParam();
  const std::vector<std::string> samples = deliver(0, 0, 20);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const std::int64_t position = static_cast<std::int64_t>(s) / per_item;
    EXPECT_EQ(told(samples[s], 0), position / items);
    EXPECT_EQ(item_of(samples[s]), shuffled_index(5, position / items, position % items, items));
    EXPECT_EQ(told(samples[s], 2), static_cast<std::int64_t>(s) % per_item);
  }
}

TEST_P(LoaderOrderTest, WithoutShuffleItemsComeInTheirOrder) {
  const std::vector<std::string> samples = deliver(2, 0, 20, false);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    EXPECT_EQ(item_of(samples[s]), static_cast<std::int64_t>(s) / GetParam().per_item % GetParam().items);
  }
}

TEST_P(LoaderOrderTest, AnyNumberOfWorkersDeliversTheSameBytes) {
  const std::vector<std::string> expected = deliver(0, 0, 60);
  for (const int workers : {1, 2, 4}) {
    EXPECT_EQ(deliver(workers, 0, 60), expected) << workers;
  }
}

TEST_P(LoaderOrderTest, ResumesAtAnySample) {
  const std::int64_t batch = GetParam().batch;
  const std::vector<std::string> expected = deliver(0, 0, 30);
  for (std::int64_t start = 0; start < std::min<std::int64_t>(40, batch * 10); ++start) {
    for (const int workers : {0, 1, 4}) {
      const std::vector<std::string> rest = deliver(workers, start, 5);
      ASSERT_EQ(rest, std::vector<std::string>(expected.begin() + start, expected.begin() + start + batch * 5))
          << "from " << start << " with " << workers << " workers";
    }
  }
}

TEST_P(LoaderOrderTest, TellsEachItemOnceWithItsTime) {
  const NumberSource source(GetParam().items, GetParam().per_item);
  for (const int workers : {0, 3}) {
    Loader loader(source, {.batch = GetParam().batch, .workers = workers, .seed = 5});
    std::vector<std::int64_t> items;
    for (int i = 0; i < 30; ++i) {
      const Batch batch = loader.next();
      EXPECT_EQ(batch.first_sample(), i * GetParam().batch);
      for (const ItemTiming& timing : batch.timings()) {
        items.push_back(timing.item);
        EXPECT_GT(timing.start_ns, 0);
        EXPECT_GE(timing.duration_ns, 0);
        EXPECT_EQ(timing.bytes, 100u);
        EXPECT_EQ(timing.thread == 0, workers == 0);
        EXPECT_LE(timing.thread, workers);
      }
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto position = static_cast<std::int64_t>(i);
      EXPECT_EQ(items[i], shuffled_index(5, position / source.items(), position % source.items(), source.items()));
    }
    const std::int64_t samples = 30 * GetParam().batch;
    EXPECT_EQ(static_cast<std::int64_t>(items.size()), (samples + GetParam().per_item - 1) / GetParam().per_item);
  }
}

TEST_P(LoaderOrderTest, AHeldBatchKeepsItsBytesWhileTheNextIsTaken) {
  const NumberSource source(GetParam().items, GetParam().per_item);
  for (const int workers : {0, 1, 2}) {
    Loader loader(source, {.batch = GetParam().batch, .workers = workers, .seed = 5});
    Batch held = loader.next();
    for (int i = 1; i < 20; ++i) {
      const std::string before(reinterpret_cast<const char*>(held.field(1)), kDataBytes);
      Batch next = loader.next();
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(held.field(1)), kDataBytes), before);
      held = std::move(next);
      EXPECT_EQ(held.first_sample(), i * GetParam().batch);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LoaderOrderTest,
                         ::testing::Values(Shape{10, 1, 4}, Shape{7, 3, 4}, Shape{5, 4, 4}, Shape{3, 8, 3},
                                           Shape{1, 1, 5}, Shape{4, 11, 2}, Shape{9, 2, 16}, Shape{2, 5, 1}),
                         [](const auto& shape) {
                           return "items" + std::to_string(shape.param.items) + "per" +
                                  std::to_string(shape.param.per_item) + "batch" + std::to_string(shape.param.batch);
                         });

TEST(LoaderTest, ASlowItemDelaysOnlyItsOwnBatch) {
  NumberSource source(100, 1);
  std::latch release(1);
  source.before_read = [&](const ItemRequest& request) {
    if (request.item == 4) {
      release.wait();
    }
  };
  Loader loader(source, {.batch = 4, .workers = 2, .prefetch = 2, .shuffle = false});
  EXPECT_EQ(loader.next().first_sample(), 0);
  // The other worker finishes everything that has a slot while item 4 hangs: 0..3, 5..19.
  while (source.reads() < 20) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(loader.ready());
  release.count_down();
  EXPECT_EQ(loader.next().first_sample(), 4);
}

TEST(LoaderTest, TellsWhatTheDeliveredItemsHaveCost) {
  NumberSource source(12, 2);
  std::atomic<std::int64_t> sum{0};
  source.before_read = [&](const ItemRequest&) {
    for (std::int64_t i = 0; i < 20'000; ++i) {
      sum.fetch_add(i, std::memory_order_relaxed);
    }
  };
  for (const int workers : {0, 2}) {
    Loader loader(source, {.batch = 4, .workers = workers});
    EXPECT_EQ(loader.work().samples, 0);
    EXPECT_EQ(loader.work().busy_ns, 0);
    std::int64_t busy_ns = 0;
    std::int64_t slowest_ns = 0;
    for (int i = 0; i < 6; ++i) {
      const Batch batch = loader.next();
      for (const ItemTiming& timing : batch.timings()) {
        busy_ns += timing.duration_ns;
        slowest_ns = std::max(slowest_ns, timing.duration_ns);
      }
    }
    const LoaderWork work = loader.work();
    EXPECT_EQ(work.samples, 24);
    EXPECT_EQ(work.busy_ns, busy_ns);
    EXPECT_EQ(work.slowest_ns, slowest_ns);
    EXPECT_GT(work.cpu_ns, 0);
  }
}

TEST(LoaderTest, TellsWhatItsThreadsSpendTheirTimeOn) {
  const auto spend = [](std::int64_t rounds) {
    static std::atomic<std::int64_t> sum{0};
    for (std::int64_t i = 0; i < rounds; ++i) {
      sum.fetch_add(i, std::memory_order_relaxed);
    }
  };
  NumberSource source(12, 2);
  source.before_read = [&](const ItemRequest& request) {
    const detail::InStage augment(Stage::kAugment);
    {
      const detail::InStage decode(Stage::kDecode);
      spend(200'000);
      if (request.item == 5) {
        throw Error(ErrorCode::kInput, "item", "is damaged");  // earlier stages continue
      }
    }
    spend(20'000);
  };
  for (const int workers : {0, 2}) {
    Loader loader(source, {.batch = 4, .workers = workers, .on_error = ErrorPolicy::kReplace});
    std::int64_t busy_ns = 0;
    const std::int64_t start_ns = system_clock().now_ns();
    for (int i = 0; i < 6; ++i) {
      const Batch batch = loader.next();
      for (const ItemTiming& timing : batch.timings()) {
        busy_ns += timing.duration_ns;
      }
    }
    const LoaderWork work = loader.work();
    const std::int64_t past_ns = system_clock().now_ns() - start_ns;
    const std::int64_t all_ns = std::accumulate(work.stage_ns.begin(), work.stage_ns.end(), std::int64_t{0});
    const auto of = [&](Stage stage) { return work.stage_ns[static_cast<std::size_t>(stage)]; };
    EXPECT_EQ(of(Stage::kRead), 0);
    EXPECT_GT(of(Stage::kDecode), 0);
    EXPECT_GT(of(Stage::kAugment), 0);
    EXPECT_GT(of(Stage::kGather), 0);
    EXPECT_GE(all_ns, busy_ns) << "all that items took is some stage's";
    EXPECT_TRUE(workers > 0 || all_ns <= past_ns) << "what is within a stage is not counted twice";
    const detail::InStage nobody_counts(Stage::kRead);
    EXPECT_EQ(loader.work().stage_ns[0], 0);
  }
}

TEST(LoaderTest, TellsTheSourceWhatItWillReadInTheOrderOfTheStream) {
  using Request = std::pair<std::int64_t, std::int64_t>;  // epoch, item
  for (const std::int64_t per_item : {1, 3}) {
    for (const int workers : {0, 2}) {
      NumberSource source(10, per_item);
      source.ahead = 7;
      std::mutex mutex;
      std::vector<Request> expected;
      source.on_expect = [&](const ItemRequest& request) {
        const std::scoped_lock lock(mutex);
        expected.emplace_back(request.epoch, request.item);
      };
      Loader loader(source, {.batch = 4, .workers = workers, .seed = 5});
      {
        const std::scoped_lock lock(mutex);
        EXPECT_GE(expected.size(), 7U) << "before anything is read";
      }
      std::vector<Request> delivered;
      for (const std::string& sample : take(loader, 8)) {  // into later epochs
        const Request request(told(sample, 0), told(sample, 1));
        if (delivered.empty() || delivered.back() != request) {
          delivered.push_back(request);
        }
      }
      const std::scoped_lock lock(mutex);
      if (workers == 0) {
        EXPECT_EQ(expected.size(), delivered.size() + 7) << "no item is told twice or left out";
        expected.resize(delivered.size());
        EXPECT_EQ(expected, delivered);
      } else {  // two threads report, each in order
        for (const Request& request : delivered) {
          EXPECT_EQ(std::count(expected.begin(), expected.end(), request), 1);
        }
      }
    }
  }
}

TEST(LoaderTest, ReadyMeansThatNextDoesNotWait) {
  NumberSource source(100, 1);
  Loader loader(source, {.batch = 4, .workers = 1});
  while (!loader.ready()) {
    std::this_thread::yield();
  }
  const Batch first = loader.next();
  Loader inline_loader(source, {.batch = 4});
  EXPECT_FALSE(inline_loader.ready());
}

TEST(LoaderTest, WorkersStopAtTheEndOfTheRing) {
  NumberSource source(1000, 1);
  Loader loader(source, {.batch = 5, .workers = 2, .prefetch = 3});
  while (source.reads() < 30) {
    std::this_thread::yield();
  }
  const Batch held = loader.next();
  for (int i = 0; i < 200; ++i) {
    std::this_thread::yield();
  }
  EXPECT_EQ(source.reads(), 30);  // six slots of five samples, one still held
}

TEST(LoaderTest, HoldingEveryBatchIsToldRatherThanWaitedFor) {
  const NumberSource source(100, 1);
  for (const int workers : {0, 1}) {
    Loader loader(source, {.batch = 2, .workers = workers, .prefetch = 2});
    std::vector<Batch> held;
    held.push_back(loader.next());
    held.push_back(loader.next());
    try {
      loader.next();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_NE(std::string(error.what()).find("2 batches are still held"), std::string::npos) << error.what();
    }
    held.erase(held.begin());
    EXPECT_EQ(loader.next().first_sample(), 4);
  }
}

TEST(LoaderTest, IsDestroyedCleanlyWhileWorkersAreBusy) {
  for (int round = 0; round < 20; ++round) {
    NumberSource source(1000, 3);
    std::binary_semaphore started(0);
    std::atomic<bool> told{false};
    source.before_read = [&](const ItemRequest&) {
      if (!told.exchange(true)) {
        started.release();
      }
    };
    Loader loader(source, {.batch = 7, .workers = 4});
    started.acquire();
    if (round % 2 == 0) {
      loader.next();
    }
  }
}

TEST(LoaderTest, MovedBatchesAreGivenBackOnce) {
  const NumberSource source(10, 1);
  Loader loader(source, {.batch = 2});
  Batch a = loader.next();
  Batch b = std::move(a);
  a = std::move(b);
  b = loader.next();
  EXPECT_EQ(a.first_sample(), 0);
  EXPECT_EQ(b.first_sample(), 2);
  a = std::move(b);
  EXPECT_EQ(loader.next().first_sample(), 4);
}

}  // namespace
}  // namespace unidle::data
