#include "unidle/cache/store.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <latch>
#include <thread>

#include "unidle/base/error.h"
#include "unidle/cache/testing/scratch_cache.h"

namespace unidle::cache {
namespace {

namespace fs = std::filesystem;
using testing::change_byte;
using testing::is_numbered;
using testing::kEntryBytes;
using testing::key_number;
using testing::numbered;
using testing::ScratchCache;
using ::testing::SizeIs;

using StoreTest = ScratchCache;

TEST_F(StoreTest, KeepsEntriesForLaterProcesses) {
  {
    Store store(options());
    EXPECT_FALSE(store.get(key_number(1)));
    const Entry entry = store.put(key_number(1), numbered(1));
    EXPECT_TRUE(entry.stored());
    EXPECT_TRUE(is_numbered(entry, 1));
  }
  Store store(options());
  const auto entry = store.get(key_number(1));
  ASSERT_TRUE(entry);
  EXPECT_TRUE(is_numbered(*entry, 1));
  EXPECT_EQ(store.statistics().entries, 1U);
  EXPECT_EQ(store.statistics().bytes, entry->bytes());
  EXPECT_EQ(entry->bytes(), kEntryBytes);
  EXPECT_EQ(files_in(folder() / "v1/tmp"), 0U);
  EXPECT_THAT(told_, SizeIs(0));
}

TEST_F(StoreTest, ANewEntryOfAKeyIsSeenByAllAndTheOldOneStaysWithItsReaders) {
  Store one(options());
  Store other(options());  // stands for another process
  one.put(key_number(1), numbered(1));
  const auto old = other.get(key_number(1));
  one.put(key_number(1), numbered(2));
  EXPECT_TRUE(is_numbered(*other.get(key_number(1)), 2));
  EXPECT_TRUE(is_numbered(*old, 1));
  EXPECT_TRUE(other.erase(key_number(1)));
  EXPECT_FALSE(other.erase(key_number(1)));
  EXPECT_FALSE(one.get(key_number(1)));
  EXPECT_TRUE(is_numbered(*old, 1));
  EXPECT_EQ(one.statistics().entries, 0U);
  EXPECT_EQ(one.statistics().bytes, 0U);
}

TEST_F(StoreTest, ThreadsThatAskForOneKeyComputeItOnce) {
  Store store(options());
  std::atomic<int> computed{0};
  std::atomic<int> right{0};
  constexpr int kThreads = 8;
  std::latch start(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        for (std::uint64_t number = 0; number < 200; ++number) {
          const Entry entry = store.get_or_compute(key_number(number), [&] {
            ++computed;
            return numbered(number);
          });
          right += is_numbered(entry, number) ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(computed, 200);
  EXPECT_EQ(right, kThreads * 200);
}

TEST_F(StoreTest, AFailedComputationGoesToItsCallerAndTheNextOneComputes) {
  Store store(options());
  EXPECT_THROW(store.get_or_compute(key_number(1), []() -> std::vector<Tensor> { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_TRUE(is_numbered(store.get_or_compute(key_number(1), [] { return numbered(1); }), 1));
}

TEST_F(StoreTest, AClaimKeepsOthersAwayUntilItIsGivenBack) {
  Store one(options());
  Store other(options());
  auto claim = one.try_claim(key_number(1));
  ASSERT_TRUE(claim);
  EXPECT_FALSE(one.try_claim(key_number(1)));
  EXPECT_FALSE(other.try_claim(key_number(1)));
  EXPECT_TRUE(other.try_claim(key_number(2)));
  one.put(*claim, numbered(1));
  claim.reset();
  EXPECT_TRUE(other.try_claim(key_number(1)));
  EXPECT_TRUE(is_numbered(*other.get(key_number(1)), 1));
}

TEST_F(StoreTest, NeverHoldsMoreThanItsBound) {
  Options bounded = options();
  bounded.max_bytes = 20 * kEntryBytes;
  bounded.hot_entries = 0;
  Store store(bounded);
  for (std::uint64_t number = 0; number < 200; ++number) {
    EXPECT_TRUE(store.put(key_number(number), numbered(number)).stored());
    std::uint64_t on_disk = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder() / "v1/blobs")) {
      on_disk += entry.is_regular_file() ? entry.file_size() : 0;
    }
    ASSERT_LE(on_disk, *bounded.max_bytes);
    ASSERT_EQ(on_disk, store.statistics().bytes);
  }
  EXPECT_EQ(store.statistics().entries, 20U);
  EXPECT_FALSE(store.put(key_number(1), numbered(1, 100000)).stored());
  EXPECT_THAT(told_, SizeIs(1));
  EXPECT_EQ(store.statistics().max_bytes, bounded.max_bytes);
  Store later(options());
  EXPECT_EQ(later.statistics().max_bytes, bounded.max_bytes) << "the bound is kept with the cache";
}

TEST_F(StoreTest, AScanLeavesWhatIsUsedAgain) {
  Options bounded = options();
  bounded.max_bytes = 100 * kEntryBytes;
  bounded.hot_entries = 0;
  Store store(bounded);
  const auto use = [&](std::uint64_t number) {
    store.get_or_compute(key_number(number), [&] { return numbered(number); });
  };
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t number = 0; number < 50; ++number) {
      use(number);
    }
  }
  for (std::uint64_t number = 1000; number < 2000; ++number) {
    use(number);
  }
  int left = 0;
  for (std::uint64_t number = 0; number < 50; ++number) {
    left += store.contains(key_number(number)) ? 1 : 0;
  }
  EXPECT_EQ(left, 50);
}

TEST_F(StoreTest, EvictionPassesOverWhatAReaderHolds) {
  Options bounded = options();
  bounded.max_bytes = 10 * kEntryBytes;
  Store store(bounded);
  Store reader(options());
  std::vector<Entry> held;
  for (std::uint64_t number = 0; number < 4; ++number) {
    store.put(key_number(number), numbered(number));
    held.push_back(*reader.get(key_number(number)));
  }
  for (std::uint64_t number = 100; number < 200; ++number) {
    EXPECT_TRUE(store.put(key_number(number), numbered(number)).stored());
  }
  for (std::uint64_t number = 0; number < 4; ++number) {
    EXPECT_TRUE(fs::exists(blob(key_number(number))));
    EXPECT_TRUE(is_numbered(held[number], number));
  }
  store.prune(0);
  EXPECT_EQ(store.statistics().entries, 4U);
  held.clear();
  reader.get(key_number(500));  // notices the pressure and releases entries kept for speed
  store.prune(0);
  EXPECT_EQ(store.statistics().entries, 0U);
}

TEST_F(StoreTest, WhenReadersHoldAllOfItWhatIsNewIsComputedAndNotStored) {
  Options bounded = options();
  bounded.max_bytes = 4 * kEntryBytes;
  Store store(bounded);
  std::vector<Entry> held;
  for (std::uint64_t number = 0; number < 4; ++number) {
    store.put(key_number(number), numbered(number));
    held.push_back(*store.get(key_number(number)));
  }
  for (std::uint64_t number = 10; number < 13; ++number) {
    const Entry entry = store.get_or_compute(key_number(number), [&] { return numbered(number); });
    EXPECT_FALSE(entry.stored());
    EXPECT_TRUE(is_numbered(entry, number));
  }
  EXPECT_THAT(told_, SizeIs(1));
  EXPECT_EQ(store.statistics().entries, 4U);
  held.clear();
  EXPECT_TRUE(store.put(key_number(10), numbered(10)).stored());
}

/// Limits the number of open files temporarily.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = most;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(StoreTest, TenThousandReadersNeedNoDescriptors) {
  Store store(options());
  constexpr std::uint64_t kKeys = 50;
  for (std::uint64_t number = 0; number < kKeys; ++number) {
    store.put(key_number(number), numbered(number));
  }
  const FewDescriptors few(256);
  Options cold = options();
  cold.hot_entries = 0;
  cold.hot_bytes = 0;
  Store reader(cold);
  std::vector<Entry> held;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const auto entry = reader.get(key_number(i % kKeys));
    ASSERT_TRUE(entry) << i;
    held.push_back(*entry);
  }
  EXPECT_TRUE(is_numbered(held[7], 7));
}

TEST_F(StoreTest, WhereNoDescriptorIsLeftEntriesAreReadAllTheSame) {
  Store store(options());
  for (std::uint64_t number = 0; number < 50; ++number) {
    store.put(key_number(number), numbered(number));
  }
  const int next = ::dup(0);
  ::close(next);
  const FewDescriptors none(static_cast<rlim_t>(next));
  ASSERT_EQ(::dup(0), -1);
  std::atomic<int> right{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (std::uint64_t number = 0; number < 50; ++number) {
          const Entry entry = store.get_or_compute(key_number(number), []() -> std::vector<Tensor> { return {}; });
          right += is_numbered(entry, number) ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(right, 4 * 50);
  EXPECT_FALSE(store.put(key_number(100), numbered(100)).stored());
  EXPECT_THAT(told_, SizeIs(1));
}

TEST_F(StoreTest, VeryManyReadersLeaveTheProgramItsMappings) {
  const std::size_t limit = std::stoul(read_file("/proc/sys/vm/max_map_count"));
  if (limit > 200'000) {
    GTEST_SKIP() << "this system allows " << limit << " mappings";
  }
  Store store(options());
  constexpr std::uint64_t kKeys = 500;
  for (std::uint64_t number = 0; number < kKeys; ++number) {
    store.put(key_number(number), numbered(number));
  }
  std::vector<Entry> held;
  for (std::uint64_t i = 0; i < limit + 1000; ++i) {
    held.push_back(*store.peek(key_number(i % kKeys)));
  }
  EXPECT_TRUE(is_numbered(held.front(), 0));
  EXPECT_TRUE(is_numbered(held.back(), (held.size() - 1) % kKeys));
  const std::string maps = read_file("/proc/self/maps");
  EXPECT_LT(static_cast<std::size_t>(std::count(maps.begin(), maps.end(), '\n')), limit / 2 + 2000);
}

TEST_F(StoreTest, PruneEvictsAndClearsAway) {
  Store store(options());
  for (std::uint64_t number = 0; number < 30; ++number) {
    store.put(key_number(number), numbered(number));
  }
  fs::remove(blob(key_number(3)));
  change_byte(blob(key_number(4)), 300);
  Store(options()).get(key_number(4));
  std::ofstream(folder() / "v1/tmp/0123-1-1") << "half";
  const Pruned pruned = store.prune(10 * kEntryBytes);
  EXPECT_EQ(pruned.entries, 18U);
  EXPECT_EQ(pruned.bytes, 18 * kEntryBytes);
  EXPECT_EQ(pruned.damaged, 1U);
  EXPECT_EQ(pruned.left_over, 1U);
  EXPECT_EQ(store.statistics().entries, 10U);
}

TEST_F(StoreTest, SaysWhatIsNoCache) {
  std::ofstream(folder()) << "a file";
  const auto code = [&](const Options& wanted) {
    try {
      Store store(wanted);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code(options()), ErrorCode::kUsage);
  fs::remove(folder());
  Options there = options();
  there.create = false;
  EXPECT_EQ(code(there), ErrorCode::kInput);
  there.create = true;
  { Store store(options()); }
  std::ofstream(folder() / "unidle-cache.json") << R"({"format": 2, "least_format": 2})";
  EXPECT_EQ(code(options()), ErrorCode::kUsage);
  std::ofstream(folder() / "unidle-cache.json") << R"({"format": 2, "least_format": 1})";
  Store store(options());
  EXPECT_TRUE(store.put(key_number(1), numbered(1)).stored());
}

}  // namespace
}  // namespace unidle::cache
