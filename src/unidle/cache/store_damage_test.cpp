#include "unidle/cache/store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "unidle/base/checksum.h"
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
    const fs::path index = index_file();
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
  const fs::path index = index_file();
  const std::string good = read_file(index);
  const std::size_t step = 151;  // testing every byte takes minutes
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

TEST_F(DamagedStoreTest, ADiskThatRefusesCostsTheCachingAndIsToldOnce) {
  Options durable = options();
  durable.durability = Durability::kPower;
  for (int part = 0; part < 256; ++part) {
    fs::create_directories(folder() / "v1/blobs" / fmt::format("{:02x}", part));
  }
  int calls = 0;
  {
    Store store(durable);
    disk_.calls = 0;
    store.put(key_number(1000), numbered(1000));
    calls = disk_.calls;
  }
  ASSERT_GE(calls, 5);
  std::uint64_t number = 0;
  for (const int error : {ENOSPC, EDQUOT, EIO}) {
    for (int call = 0; call < calls; ++call) {
      SCOPED_TRACE(fmt::format("{}, call {}", std::strerror(error), call));
      Store store(durable);
      const std::uint64_t before = store.statistics().entries;
      told_.clear();
      disk_.error = error;
      disk_.calls = 0;
      disk_.fail_from = call;
      for (int round = 0; round < 3; ++round) {
        const std::uint64_t mine = ++number;
        const Entry entry = store.get_or_compute(key_number(mine), [&] { return numbered(mine); });
        EXPECT_FALSE(entry.stored());
        EXPECT_TRUE(is_numbered(entry, mine));
        EXPECT_FALSE(store.get(key_number(mine))) << "what may not be on the disk is taken back";
      }
      EXPECT_THAT(told_, SizeIs(1));
      EXPECT_EQ(files_in(folder() / "v1/tmp"), 0U);
      EXPECT_EQ(store.statistics().entries, before) << "nor counted";
      disk_.fail_from = unidle::testing::FailingDisk::kNever;
      EXPECT_FALSE(store.put(key_number(number), numbered(number)).stored()) << "not before some time has passed";
      clock_.advance(11 * kNsPerSecond);
      EXPECT_TRUE(store.put(key_number(number), numbered(number)).stored());
    }
  }
}

TEST_F(DamagedStoreTest, EntriesAreCountedOnADiskThatHasNoRoomForAnIndex) {
  {
    Store store(options());
    for (std::uint64_t number = 0; number < 5; ++number) {
      store.put(key_number(number), numbered(number));
    }
  }
  Store store(options());
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit size{};
  ::getrlimit(RLIMIT_FSIZE, &size);
  rlimit none = size;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  std::uint64_t entries = 0;
  std::string failure;
  try {
    entries = store.statistics().entries;
  } catch (const Error& error) {
    failure = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &size);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(failure, "");
  EXPECT_EQ(entries, 5U);
  EXPECT_EQ(store.statistics().entries, 5U);
}

TEST_F(DamagedStoreTest, AClockThatIsSetBackOrForthKeepsNothingFromBeingStored) {
  constexpr std::int64_t kYears_ns = std::int64_t{50} * 365 * 24 * 3600 * kNsPerSecond;
  clock_.advance(2 * kYears_ns);
  for (const std::int64_t jump : {-kYears_ns, kYears_ns, -2 * kYears_ns}) {
    Store store(options());
    disk_.calls = 0;
    disk_.fail_from = 0;
    EXPECT_FALSE(store.put(key_number(1), numbered(1)).stored());
    disk_.fail_from = unidle::testing::FailingDisk::kNever;
    clock_.advance(jump);
    EXPECT_TRUE(store.put(key_number(1), numbered(1)).stored()) << jump;
    EXPECT_TRUE(is_numbered(*store.get(key_number(1)), 1));
  }
}

TEST_F(DamagedStoreTest, TwoVersionsOfTheProgramShareAFolder) {
  Options bounded = options();
  bounded.max_bytes = 20 * kEntryBytes;
  Store store(bounded);
  for (std::uint64_t number = 0; number < 5; ++number) {
    store.put(key_number(number), numbered(number));
  }
  // A later version wrote one of the blobs, and has its own folder beside ours.
  std::string bytes = read_file(blob(key_number(1)));
  bytes[8] = 2;
  const std::uint32_t sum =
      crc32(crc32(0, std::as_bytes(std::span(bytes).first(12))), std::as_bytes(std::span(bytes).subspan(16)));
  std::memcpy(bytes.data() + 12, &sum, sizeof sum);
  std::ofstream(blob(key_number(1)), std::ios::binary) << bytes;
  const fs::path later = folder() / "v2/blobs/ab";
  fs::create_directories(later);
  std::ofstream(later / "an entry") << "of theirs";
  std::ofstream(folder() / "unidle-cache.json") << R"({"format": 2, "least_format": 1, "max_bytes": 14080})";

  Store reader(options());
  EXPECT_FALSE(reader.get(key_number(1)));
  EXPECT_TRUE(is_numbered(*reader.get(key_number(2)), 2));
  const Verified verified = reader.verify();
  EXPECT_EQ(verified.checked, 5U);
  EXPECT_EQ(verified.damaged, 0U);
  reader.prune();
  EXPECT_EQ(read_file(blob(key_number(1))), bytes) << "it is theirs";
  EXPECT_EQ(reader.statistics().entries, 5U);
  // Both versions enforce the bound, so either may evict the other's blobs.
  reader.prune(0);
  EXPECT_FALSE(fs::exists(blob(key_number(1))));
  EXPECT_EQ(read_file(later / "an entry"), "of theirs");
  // The entry is computed here and replaces their blob: they can read it, too.
  std::ofstream(blob(key_number(1)), std::ios::binary) << bytes;
  EXPECT_TRUE(is_numbered(reader.get_or_compute(key_number(1), [] { return numbered(1); }), 1));
  EXPECT_TRUE(is_numbered(*reader.get(key_number(1)), 1));
  EXPECT_THAT(told_, SizeIs(0));
}

TEST_F(DamagedStoreTest, IndexesOfOtherVersionsAreLeftAlone) {
  { Store(options()).put(key_number(1), numbered(1)); }
  const fs::path earlier = folder() / "v1/index.db";
  const fs::path later = folder() / "v1/index-3.db";
  for (const fs::path& theirs : {earlier, later}) {
    std::ofstream(theirs) << "theirs, with other tables";
  }
  Store store(options());
  EXPECT_TRUE(store.put(key_number(2), numbered(2)).stored());
  EXPECT_EQ(store.statistics().entries, 2U);
  EXPECT_EQ(store.verify().checked, 2U);
  EXPECT_EQ(read_file(earlier), "theirs, with other tables");
  store.prune();
  EXPECT_FALSE(fs::exists(earlier)) << "it can be made anew, and takes room";
  EXPECT_EQ(read_file(later), "theirs, with other tables");
  EXPECT_EQ(files_in(folder() / "v1/damaged"), 0U);
  EXPECT_THAT(told_, SizeIs(0));
}

TEST_F(DamagedStoreTest, EntriesWithANameAreCountedHoweverTheIndexWasMade) {
  const auto named = [](std::uint64_t number, const char* kind) {
    std::vector<Tensor> tensors = numbered(number);
    const std::uint8_t letter = 'a';
    tensors.insert(tensors.begin(), make_tensor<std::uint8_t>(kind, DType::kU8, {1}, std::span(&letter, 1)));
    return tensors;
  };
  {
    Store store(options());
    store.put(key_number(1), named(1, "unidle:name"));
    store.put(key_number(2), named(2, "unidle:bytes name"));
    store.put(key_number(3), named(3, "unidle:structure"));
    store.put(key_number(4), numbered(4));
    store.put(key_number(1), named(1, "unidle:name"));
    EXPECT_EQ(store.statistics().named, 2U);
  }
  Options only = options();
  only.read_only = true;
  EXPECT_EQ(Store(only).statistics().named, 2U);
  fs::remove(index_file());
  Store store(options());
  EXPECT_EQ(store.statistics().named, 2U);
  store.erase(key_number(2));
  EXPECT_EQ(store.statistics().named, 1U);
  store.put(key_number(1), numbered(1));
  EXPECT_EQ(store.statistics().named, 0U);
  EXPECT_EQ(store.statistics().entries, 3U);
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
