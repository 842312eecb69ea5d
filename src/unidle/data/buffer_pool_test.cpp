#include "unidle/data/buffer_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "unidle/data/loader.h"
#include "unidle/data/testing/number_source.h"

namespace unidle::data {
namespace {

using testing::kDataBytes;
using testing::kToldBytes;
using testing::NumberSource;

constexpr std::size_t kBytes = 4096;

/// Lends a set number of times, from its own memory that nobody else may free.
struct Lending {
  static inline std::array<std::array<std::byte, kBytes>, 4> blocks;
  static inline std::size_t left = 0;

  static void* lend(std::size_t bytes) { return bytes <= kBytes && left > 0 ? blocks[--left].data() : nullptr; }
  static bool has(const std::byte* memory) {
    return memory >= blocks.front().data() && memory < blocks.back().data() + kBytes;
  }
};

TEST(BufferPoolTest, LentMemoryGoesRoundAndIsNeverFreed) {
  Lending::left = 2;
  BufferPool pool(&Lending::lend);
  std::byte* const first = pool.allocate(kBytes);
  std::byte* const second = pool.allocate(kBytes);
  EXPECT_TRUE(Lending::has(first));
  EXPECT_TRUE(Lending::has(second));
  std::byte* const own = pool.allocate(kBytes);  // the lender has no more
  EXPECT_FALSE(Lending::has(own));
  pool.discard(first, kBytes);
  EXPECT_EQ(pool.allocate(kBytes), first) << "what was discarded went to nobody";
  pool.discard(own, kBytes);
  pool.release(first, kBytes);
  pool.close();
  pool.release(second, kBytes);  // frees memory that is not lent; the sanitizer would report lent memory
}

TEST(BufferPoolTest, LentMemoryThatIsTakenBackIsNobodysAnyMore) {
  Lending::left = 2;
  BufferPool pool(&Lending::lend);
  std::byte* const lent = pool.allocate(kBytes);
  EXPECT_TRUE(pool.take_back(lent));
  EXPECT_FALSE(pool.take_back(lent));
  std::byte* const other = pool.allocate(kBytes);
  EXPECT_TRUE(Lending::has(other));
  EXPECT_NE(other, lent);
  pool.release(other, kBytes);
  std::byte* const own = BufferPool().allocate(kBytes);
  EXPECT_FALSE(pool.take_back(own));
  host_allocator().release(own, kBytes);
}

TEST(BufferPoolTest, BatchesOfALoaderLieInLentMemory) {
  Lending::left = Lending::blocks.size();  // two slots of two fields
  BufferPool pool(&Lending::lend);
  const NumberSource source(10, 1);
  {
    Loader loader(source, {.batch = 4, .allocator = &pool});
    for (int i = 0; i < 10; ++i) {
      const Batch batch = loader.next();
      EXPECT_TRUE(Lending::has(batch.field(0)));
      EXPECT_TRUE(Lending::has(batch.field(1)));
    }
  }
  EXPECT_EQ(Lending::left, 0u);
}

TEST(BufferPoolTest, SlotsTakeNoMoreThanTheAllocatorSays) {
  struct Small final : SlotAllocator {
    std::byte* allocate(std::size_t bytes) override { return host_allocator().allocate(bytes); }
    void release(std::byte* memory, std::size_t bytes) override { host_allocator().release(memory, bytes); }
    std::uint64_t most_bytes() const override { return 5 * 4 * (kToldBytes + kDataBytes); }
  } small;
  const NumberSource source(10, 1);
  EXPECT_EQ(Loader(source, {.batch = 4, .workers = 2, .prefetch = 8, .allocator = &small}).depth(), 5);
  EXPECT_EQ(Loader(source, {.batch = 400, .workers = 2, .prefetch = 8, .allocator = &small}).depth(), 2);
  EXPECT_EQ(BufferPool().most_bytes(), UINT64_MAX);
  EXPECT_EQ(BufferPool(&Lending::lend).most_bytes(), 2ULL << 30);
}

}  // namespace
}  // namespace unidle::data
