// How much memory a loader takes, and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"
#include "unidle/data/testing/counting_allocator.h"
#include "unidle/data/testing/number_source.h"

namespace unidle::data {
namespace {

using testing::CountingAllocator;
using testing::kDataBytes;
using testing::kToldBytes;
using testing::NumberSource;
using testing::take;

constexpr std::int64_t kBatchBytes = 4 * static_cast<std::int64_t>(kToldBytes + kDataBytes);

TEST(LoaderAllocationTest, SlotsAreAllocatedOnceAndReleased) {
  const NumberSource source(10, 1);
  CountingAllocator allocator;
  {
    Loader loader(source, {.batch = 4, .workers = 2, .prefetch = 3, .allocator = &allocator});
    take(loader, 50);
  }
  EXPECT_EQ(allocator.allocations, 2 * 6);
  EXPECT_TRUE(allocator.all_released());
}

TEST(LoaderAllocationTest, AFailedAllocationReleasesTheOthers) {
  const NumberSource source(10, 1);
  CountingAllocator allocator;
  allocator.fail_at = 5;
  EXPECT_THROW(Loader(source, {.batch = 4, .workers = 2, .allocator = &allocator}), Error);
  EXPECT_EQ(allocator.allocations, 5);
  EXPECT_TRUE(allocator.all_released());
}

TEST(LoaderAllocationTest, ABatchWhoseMemoryCannotBeExchangedKeepsIt) {
  const NumberSource source(10, 1);
  CountingAllocator allocator;
  std::vector<std::byte*> taken;
  {
    Loader loader(source, {.batch = 4, .allocator = &allocator});
    Batch batch = loader.next();
    const std::vector<std::byte*> before = {batch.field(0), batch.field(1)};
    allocator.fail_at = static_cast<int>(allocator.out()) + 1;  // the second field's
    EXPECT_THROW(batch.take(), Error);
    allocator.fail_at = -1;
    EXPECT_EQ(batch.field(0), before[0]);
    EXPECT_EQ(batch.field(1), before[1]);
    taken = batch.take();
    EXPECT_EQ(taken, before);
  }
  allocator.release(taken[0], 4 * kToldBytes);
  allocator.release(taken[1], 4 * kDataBytes);
  EXPECT_TRUE(allocator.all_released());
}

TEST(LoaderAllocationTest, HostMemoryIsPageAligned) {
  std::byte* memory = host_allocator().allocate(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
  host_allocator().release(memory, 100);
}

TEST(LoaderBudgetTest, SlotsAreAsManyAsFit) {
  const NumberSource source(10, 1);
  const std::vector<std::string> expected = [&] {
    Loader loader(source, {.batch = 4});
    return take(loader, 40);
  }();
  for (const auto& [max_bytes, slots] : {std::pair{2 * kBatchBytes, 2},
                                         {3 * kBatchBytes - 1, 2},
                                         {5 * kBatchBytes, 5},
                                         {100 * kBatchBytes, 12},
                                         {std::int64_t{0}, 12}}) {
    CountingAllocator allocator;
    Loader loader(source, {.batch = 4, .workers = 4, .prefetch = 3, .max_bytes = max_bytes, .allocator = &allocator});
    EXPECT_EQ(take(loader, 40), expected) << max_bytes;
    EXPECT_EQ(allocator.allocations, 2 * slots) << max_bytes;
    EXPECT_EQ(loader.depth(), slots) << max_bytes;
    EXPECT_TRUE(max_bytes == 0 || allocator.bytes_out() <= static_cast<std::size_t>(max_bytes));
  }
}

TEST(LoaderBudgetTest, TwoBatchesThatDoNotFitAreToldWithWhatWouldFit) {
  const NumberSource source(10, 1);
  try {
    Loader(source, {.batch = 4, .workers = 1, .max_bytes = 2 * kBatchBytes - 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.subject(), "loader option max_bytes");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("max_bytes=" + std::to_string(2 * kBatchBytes)));
  }
  const NumberSource straddling(10, 3);  // an item spans two batches
  EXPECT_THROW(Loader(straddling, {.batch = 4, .max_bytes = 2 * kBatchBytes}), Error);
  Loader enough(straddling, {.batch = 4, .workers = 2, .max_bytes = 3 * kBatchBytes});
  EXPECT_EQ(take(enough, 10).size(), 40u);
}

}  // namespace
}  // namespace unidle::data
