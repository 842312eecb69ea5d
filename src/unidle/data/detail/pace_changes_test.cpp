// Workers and depth that change while batches are made: only speed and memory depend on them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "unidle/data/buffer_pool.h"
#include "unidle/data/detail/item_maker.h"
#include "unidle/data/detail/slot_ring.h"
#include "unidle/data/detail/worker_threads.h"
#include "unidle/data/loader.h"
#include "unidle/data/random.h"
#include "unidle/data/testing/counting_allocator.h"
#include "unidle/data/testing/number_source.h"

namespace unidle::data::detail {
namespace {

using testing::CountingAllocator;
using testing::NumberSource;

constexpr int kWorkers = 6;
constexpr std::int64_t kSlots = 9;

/// The threads and slots of a loader, at a pace set by the test.
class PacedThreads {
 public:
  PacedThreads(const Source& source, const LoaderOptions& given, SlotAllocator& memory)
      : options(given),
        plan(source, options),
        stream{source, options, plan},
        ring(plan, source.fields(), kSlots, memory, {}),
        waits(kWorkers),
        sums(kWorkers) {
    for (int thread = 0; thread < kWorkers; ++thread) {
      makers.emplace_back(stream, ring, thread + 1, sums[static_cast<std::size_t>(thread)]);
    }
    threads.start(kWorkers, [this](int thread) { work(static_cast<std::size_t>(thread) - 1); });
  }
  ~PacedThreads() {
    ring.close();
    threads.stop();
  }

  /// The bytes of both fields of the next batch, which is returned at once or later.
  std::string take() {
    Slot& slot = ring.slot(taken);
    ring.wait_complete(taken, std::nullopt);
    std::string bytes;
    for (std::size_t field = 0; field < slot.fields.size(); ++field) {
      bytes.append(reinterpret_cast<const char*>(slot.fields[field]),
                   slot.sample_bytes[field] * static_cast<std::size_t>(slot.samples));
    }
    ++taken;
    ring.deliver();
    held.push_back(&slot);
    return bytes;
  }
  void give_back_all_but(std::size_t count) {
    for (; held.size() > count; held.pop_front()) {
      ring.give_back(*held.front());
    }
  }

  const LoaderOptions options;
  const Plan plan;
  const Stream stream;
  SlotRing ring;
  std::vector<WaitSum> waits;
  std::vector<StageSums> sums;
  std::deque<ItemMaker> makers;
  std::atomic<std::int64_t> next_unit{0};
  WorkerThreads threads;
  std::int64_t taken = 0;
  std::deque<Slot*> held;

 private:
  void work(std::size_t number) {
    while (threads.stays(static_cast<int>(number) + 1)) {
      const Plan::Range unit = plan.unit(next_unit.fetch_add(1));
      if (!ring.wait_open(plan.last_batch(unit.end - 1), waits[number])) {
        return;
      }
      makers[number].make(unit);
    }
  }
};

TEST(PaceChangesTest, TheOrderStaysTheSame) {
  for (const std::int64_t per_item : {1, 3}) {
    const NumberSource source(50, per_item);
    const LoaderOptions options = {.batch = 4, .seed = 9};
    Loader plain(source, options);
    CountingAllocator memory;
    {
      PacedThreads paced(source, options, memory);
      CounterRandom random{static_cast<std::uint64_t>(per_item)};
      for (int i = 0; i < 1500; ++i) {
        std::string expected;
        {
          const Batch batch = plain.next();
          for (std::size_t field = 0; field < 2; ++field) {
            expected.append(reinterpret_cast<const char*>(batch.field(field)), source.fields()[field].bytes() * 4);
          }
        }
        ASSERT_EQ(paced.take(), expected) << i;
        paced.give_back_all_but(random.below(3));
        if (random.below(3) == 0) {
          paced.threads.want(1 + static_cast<int>(random.below(kWorkers)));
          paced.ring.set_depth(2 + paced.plan.straddle() + random.below(kSlots - 3));
        }
      }
    }
    EXPECT_TRUE(memory.all_released());
  }
}

TEST(PaceChangesTest, MemoryGoesWithTheDepthAndComesAgain) {
  const NumberSource source(50, 1);
  CountingAllocator memory;
  PacedThreads paced(source, {.batch = 4}, memory);
  const auto go_on = [&](int batches) {
    for (int i = 0; i < batches; ++i) {
      paced.take();
      paced.give_back_all_but(1);
    }
  };
  go_on(20);
  EXPECT_EQ(memory.out(), 2u * kSlots);
  paced.ring.set_depth(2);
  go_on(3 * kSlots);
  EXPECT_LE(memory.out(), 2u * (2 + 1 + 2)) << "two ahead, one held, two spare";
  const int before = memory.allocations;
  go_on(200);
  EXPECT_EQ(memory.allocations, before) << "nothing is allocated for a batch";
  paced.ring.set_depth(kSlots);
  go_on(3 * kSlots);
  EXPECT_EQ(memory.out(), 2u * kSlots);
}

TEST(PaceChangesTest, ThePoolKeepsNoneOfTheMemoryThatWentWithTheDepth) {
  static int asked;  // each time that the pool had nothing to reuse
  asked = 0;
  const NumberSource source(50, 1);
  BufferPool memory([](std::size_t) -> void* {
    ++asked;
    return nullptr;
  });
  {
    PacedThreads paced(source, {.batch = 4}, memory);
    const auto go_on = [&](int batches) {
      for (int i = 0; i < batches; ++i) {
        paced.take();
        paced.give_back_all_but(1);
      }
    };
    go_on(20);
    paced.ring.set_depth(2);
    go_on(3 * kSlots);
    const int before = asked;
    paced.ring.set_depth(kSlots);
    go_on(3 * kSlots);
    EXPECT_GE(asked - before, 2 * (kSlots - (2 + 1 + 2))) << "two were ahead, one held, two spare";
  }
  memory.close();
}

TEST(PaceChangesTest, GoesOnWithTheMemoryThatThereIs) {
  const NumberSource source(50, 1);
  CountingAllocator memory;
  PacedThreads paced(source, {.batch = 4}, memory);
  paced.ring.set_depth(2);
  for (int i = 0; i < 3 * kSlots; ++i) {
    paced.take();
    paced.give_back_all_but(0);
  }
  memory.fail_at = static_cast<int>(memory.out());
  paced.ring.set_depth(kSlots);
  for (int i = 0; i < 3 * kSlots; ++i) {
    paced.take();
    paced.give_back_all_but(0);
  }
  EXPECT_EQ(static_cast<int>(memory.out()), memory.fail_at);
}

TEST(PaceChangesTest, CountsWhatIsHeldWhereMemoryWasRefused) {
  const NumberSource source(50, 1);
  CountingAllocator memory;
  PacedThreads paced(source, {.batch = 4}, memory);
  paced.ring.set_depth(2);
  for (int i = 0; i < 3 * kSlots; ++i) {
    paced.take();
    paced.give_back_all_but(0);
  }
  EXPECT_EQ(paced.ring.held(), 0);
  memory.fail_at = static_cast<int>(memory.out());
  paced.ring.set_depth(kSlots);
  while (paced.ring.is_open(paced.taken)) {
    paced.take();
  }
  EXPECT_LT(paced.ring.held(), kSlots) << "there is memory for no more";
  EXPECT_EQ(paced.ring.held(), static_cast<std::int64_t>(paced.held.size()));
  paced.give_back_all_but(1);
  EXPECT_EQ(paced.ring.held(), 1);
}

TEST(PaceChangesTest, NoMoreThreadsWorkThanAreWanted) {
  NumberSource source(1000, 1);
  std::atomic<int> at_work{0};
  std::atomic<int> most{0};
  source.before_read = [&](const ItemRequest&) {
    const int now = at_work.fetch_add(1) + 1;
    for (int seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::yield();
    at_work.fetch_sub(1);
  };
  CountingAllocator memory;
  PacedThreads paced(source, {.batch = 4}, memory);
  paced.threads.want(2);
  for (int i = 0; i < 4 * kSlots; ++i) {  // work that the others had started is done by then
    paced.take();
    paced.give_back_all_but(0);
  }
  most = 0;
  for (int i = 0; i < 200; ++i) {
    paced.take();
    paced.give_back_all_but(0);
  }
  EXPECT_LE(most.load(), 2);
}

TEST(PaceChangesTest, StopsAtAnyTime) {
  for (int round = 0; round < 60; ++round) {
    const NumberSource source(1000, 1 + round % 3);
    CountingAllocator memory;
    PacedThreads paced(source, {.batch = 4}, memory);
    paced.ring.set_depth(3 + round % 5);
    paced.threads.want(1 + round % kWorkers);
    for (int i = 0; i < round; ++i) {
      paced.take();
      paced.give_back_all_but(0);
    }
  }
}

}  // namespace
}  // namespace unidle::data::detail
