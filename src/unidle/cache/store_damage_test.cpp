#include "unidle/cache/store.h"

#include <gmock/gmock.h>

#include <fstream>

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

using DamagedStoreTest = ScratchCache;

TEST_F(DamagedStoreTest, ADamagedEntryIsSetAsideAndComputedAgain) {
  std::size_t places = 0;
  for (std::size_t at = 0; at < kEntryBytes; at += at < 64 ? 5 : 61, ++places) {  // blob_test.cpp has every bit
    Store store(options());
    store.put(key_number(1), numbered(1));
    change_byte(blob(key_number(1)), at);
    Store reader(options());
    EXPECT_FALSE(reader.get(key_number(1))) << at;
    EXPECT_FALSE(fs::exists(blob(key_number(1))));
    EXPECT_TRUE(fs::exists(folder() / "v1/damaged" / key_number(1).hex()));
    EXPECT_TRUE(is_numbered(reader.get_or_compute(key_number(1), [] { return numbered(1); }), 1));
    EXPECT_EQ(reader.statistics().entries, 1U);
  }
  EXPECT_THAT(told_, SizeIs(places)) << "once for each that was opened";
}

TEST_F(DamagedStoreTest, ATruncatedEntryIsSetAside) {
  for (std::uint64_t length = 0; length < kEntryBytes; length += length < 2 ? 1 : 31) {
    Store store(options());
    store.put(key_number(1), numbered(1));
    fs::resize_file(blob(key_number(1)), length);
    Store reader(options());
    EXPECT_FALSE(reader.get(key_number(1))) << length;
    EXPECT_TRUE(is_numbered(reader.get_or_compute(key_number(1), [] { return numbered(1); }), 1));
  }
}

TEST_F(DamagedStoreTest, VerifyFindsWhatIsDamagedAndPutsTheIndexRight) {
  Store store(options());
  for (std::uint64_t number = 0; number < 50; ++number) {
    store.put(key_number(number), numbered(number));
  }
  change_byte(blob(key_number(7)), 300);
  fs::resize_file(blob(key_number(8)), 10);
  fs::remove(blob(key_number(9)));
  const Verified verified = store.verify();
  EXPECT_EQ(verified.checked, 49U);
  EXPECT_EQ(verified.damaged, 2U);
  EXPECT_EQ(verified.set_aside, 2U);
  EXPECT_EQ(store.statistics().entries, 47U);
  EXPECT_EQ(store.statistics().bytes, 47 * kEntryBytes);
  EXPECT_EQ(store.verify().damaged, 0U);
}

TEST_F(DamagedStoreTest, AnIndexThatIsLostOrDamagedIsMadeAnew) {
  for (const char* how : {"lost", "rubbish", "cut", "header", "middle", "lost while open"}) {
    SCOPED_TRACE(how);
    Options bounded = options();
    bounded.max_bytes = 40 * kEntryBytes;
    bounded.hot_entries = 0;
    auto store = std::make_unique<Store>(bounded);
    for (std::uint64_t number = 0; number < 30; ++number) {
      store->put(key_number(number), numbered(number));
    }
    const fs::path index = folder() / "v1/index.db";
    if (std::string_view(how) != "lost while open") {
      store.reset();
    }
    if (std::string_view(how).starts_with("lost")) {
      fs::remove(index);
      fs::remove(index.string() + "-wal");
      fs::remove(index.string() + "-shm");
    } else if (std::string_view(how) == "rubbish") {
      std::ofstream(index) << "this is no database at all, however long one looks at it";
    } else if (std::string_view(how) == "cut") {
      fs::resize_file(index, 5000);
    } else {
      change_byte(index, std::string_view(how) == "header" ? 20 : 4096 + 3);
    }
    if (!store) {
      store = std::make_unique<Store>(bounded);
    }
    for (std::uint64_t number = 30; number < 60; ++number) {
      ASSERT_TRUE(store->put(key_number(number), numbered(number)).stored()) << told_.back();
    }
    EXPECT_EQ(store->statistics().entries, 40U);
    EXPECT_EQ(store->statistics().bytes, 40 * kEntryBytes);
    store.reset();
    fs::remove_all(folder());
  }
}

TEST_F(DamagedStoreTest, AnyFlippedByteOfTheIndexCostsNoEntry) {
  {
    Store store(options());
    for (std::uint64_t number = 0; number < 5; ++number) {
      store.put(key_number(number), numbered(number));
    }
  }
  const fs::path index = folder() / "v1/index.db";
  const std::string good = read_file(index);
  const std::size_t step = 151;  // all of them take minutes
  for (std::size_t at = 0; at < good.size(); at += step) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    fs::remove(index.string() + "-wal");
    fs::remove(index.string() + "-shm");
    std::ofstream(index, std::ios::binary) << bad;
    Options bounded = options();
    bounded.max_bytes = 100 * kEntryBytes;
    Store store(bounded);
    EXPECT_TRUE(store.put(key_number(9), numbered(9)).stored()) << at;
    for (std::uint64_t number = 0; number < 5; ++number) {
      const auto entry = store.get(key_number(number));
      ASSERT_TRUE(entry) << at;
      EXPECT_TRUE(is_numbered(*entry, number));
    }
  }
}

TEST_F(DamagedStoreTest, AFullDiskCostsTheCachingAndIsToldOnce) {
  int calls = 0;
  {
    Options durable = options();
    durable.durability = Durability::kPower;
    Store store(durable);
    disk_.calls = 0;
    store.put(key_number(1000), numbered(1000));
    calls = disk_.calls;
  }
  ASSERT_GE(calls, 5);
  for (int call = 0; call < calls - 1; ++call) {  // the last is the folder's sync
    SCOPED_TRACE(call);
    Options durable = options();
    durable.durability = Durability::kPower;
    Store store(durable);
    told_.clear();
    disk_.calls = 0;
    disk_.fail_from = call;
    const auto number = static_cast<std::uint64_t>(call);
    for (std::uint64_t round = 0; round < 3; ++round) {
      const Entry entry = store.get_or_compute(key_number(number + 100 * round), [&] { return numbered(number); });
      EXPECT_FALSE(entry.stored());
      EXPECT_TRUE(is_numbered(entry, number));
    }
    EXPECT_THAT(told_, SizeIs(1));
    EXPECT_EQ(files_in(folder() / "v1/tmp"), 0U);
    disk_.fail_from = unidle::testing::FailingDisk::kNever;
    EXPECT_FALSE(store.put(key_number(number), numbered(number)).stored()) << "not before some time has passed";
    clock_.advance(11 * kNsPerSecond);
    EXPECT_TRUE(store.put(key_number(number), numbered(number)).stored());
  }
}

TEST_F(DamagedStoreTest, AFileSystemThatCannotMapIsRead) {
  Store store(options());
  disk_.no_maps = true;
  store.put(key_number(1), numbered(1));
  Store reader(options());
  EXPECT_TRUE(is_numbered(*reader.get(key_number(1)), 1));
}

TEST_F(DamagedStoreTest, ReadOnlyServesAndChangesNothing) {
  Store(options()).put(key_number(1), numbered(1));
  Options only = options();
  only.read_only = true;
  Store store(only);
  EXPECT_TRUE(is_numbered(*store.get(key_number(1)), 1));
  EXPECT_FALSE(store.get_or_compute(key_number(2), [] { return numbered(2); }).stored());
  EXPECT_EQ(store.statistics().entries, 1U);
  EXPECT_FALSE(store.erase(key_number(1)));
  change_byte(blob(key_number(1)), 300);
  EXPECT_FALSE(Store(only).get(key_number(1)));
  EXPECT_TRUE(fs::exists(blob(key_number(1))));
}

TEST_F(DamagedStoreTest, LeftoversOfKilledWritersAreRemoved) {
  { Store store(options()); }
  std::ofstream(folder() / "v1/tmp/0123-1-1") << "half";
  Store store(options());
  EXPECT_EQ(files_in(folder() / "v1/tmp"), 0U);
}

TEST_F(DamagedStoreTest, ABlobThatTheIndexDoesNotKnowIsFound) {
  { Store(options()).put(key_number(1), numbered(1)); }
  const fs::path other = folder().parent_path() / "other";
  Options elsewhere = options();
  elsewhere.path = other;
  { Store(elsewhere).put(key_number(2), numbered(2)); }
  fs::create_directories(blob(key_number(2)).parent_path());
  fs::copy_file(other / "v1/blobs" / key_number(2).hex().substr(0, 2) / key_number(2).hex(), blob(key_number(2)));
  Store store(options());
  EXPECT_EQ(store.statistics().entries, 1U);
  EXPECT_TRUE(is_numbered(*store.get(key_number(2)), 2));
  store.prune();
  EXPECT_EQ(store.statistics().entries, 2U);
}

}  // namespace
}  // namespace unidle::cache
