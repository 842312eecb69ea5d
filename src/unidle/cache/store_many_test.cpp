#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "unidle/base/error.h"
#include "unidle/cache/testing/scratch_cache.h"

namespace unidle::cache {
namespace {

namespace fs = std::filesystem;
using testing::is_numbered;
using testing::kEntryBytes;
using testing::key_number;
using testing::numbered;
using testing::ScratchCache;
using ::testing::SizeIs;

/// Entries together with the arrays they point to.
class Many {
 public:
  Many(std::uint64_t first, std::uint64_t count) {
    arrays_.reserve(count);
    for (std::uint64_t number = first; number < first + count; ++number) {
      add(key_number(number), numbered(number));
    }
  }
  void add(const Key& key, std::vector<Tensor> tensors) {
    arrays_.push_back(std::move(tensors));
    entries_.push_back({key, views_of(arrays_.back())});
  }
  operator std::span<const NewEntry>() const { return entries_; }  // NOLINT(google-explicit-constructor)

 private:
  std::vector<std::vector<Tensor>> arrays_;
  std::vector<NewEntry> entries_;
};

/// A disk that loses power: unsynced data is lost. Records the order of requests.
class OrderedDisk final : public Disk {
 public:
  using Disk::write;
  int write(int fd, std::span<iovec> pieces) override {
    {
      const std::scoped_lock lock(mutex_);
      unsynced_.insert(name_of(fd));
    }
    return Disk::write(fd, pieces);
  }
  int sync(int fd) override {
    const fs::path name = name_of(fd);
    const std::scoped_lock lock(mutex_);
    note_sync(name);
    std::erase_if(new_names_, [&](const fs::path& each) { return each.parent_path() == name; });
    return 0;
  }
  int sync_all(int fd) override {
    const fs::path name = name_of(fd);
    const std::scoped_lock lock(mutex_);
    note_sync(name);
    if (names_go_along) {
      new_names_.erase(name);
    }
    return 0;
  }
  bool sync_includes_names(const fs::path&) override { return names_go_along; }
  int rename(const fs::path& from, const fs::path& to) override {
    const std::scoped_lock lock(mutex_);
    const bool unsynced = unsynced_.erase(from) > 0;
    replaced_before_sync += unsynced && fs::exists(to) ? 1 : 0;
    if (unsynced) {
      unsynced_.insert(to);
    }
    const int failure = Disk::rename(from, to);
    if (failure == 0 && to.parent_path().parent_path().filename() == "blobs") {
      new_names_.insert(to);
    }
    return failure;
  }
  /// How many files and names a power failure would revert now.
  std::size_t unsynced() const { return unsynced_.size() + new_names_.size(); }

  int syncs = 0;
  int replaced_before_sync = 0;
  int synced_without_name = 0;
  bool names_go_along = false;
  fs::path folder;  // of the cache

 private:
  static fs::path name_of(int fd) { return fs::read_symlink("/proc/self/fd/" + std::to_string(fd)); }
  void note_sync(const fs::path& name) {
    ++syncs;
    synced_without_name += name.parent_path() == folder / "v1/tmp" ? 1 : 0;
    unsynced_.erase(name);
  }

  std::mutex mutex_;
  std::set<fs::path> unsynced_;
  std::set<fs::path> new_names_;
};

class StoreManyTest : public ScratchCache {
 protected:
  static void expect_all(Store& store, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t number = first; number < first + count; ++number) {
      const auto entry = store.get(key_number(number));
      ASSERT_TRUE(entry && is_numbered(*entry, number)) << number;
    }
  }
};

TEST_F(StoreManyTest, AllAreThereForLaterProcesses) {
  {
    Store store(options());
    EXPECT_EQ(store.put_many(Many(0, 500)), 500U);
    EXPECT_EQ(store.put_many({}), 0U);
  }
  Store store(options());
  expect_all(store, 0, 500);
  EXPECT_EQ(store.statistics().entries, 500U);
  EXPECT_EQ(store.statistics().bytes, 500 * kEntryBytes);
  EXPECT_EQ(store.verify().checked, 500U);
  EXPECT_EQ(files_in(folder() / "v1/tmp"), 0U);
  EXPECT_THAT(told_, SizeIs(0));
}

TEST_F(StoreManyTest, WhatIsStoredOutlivesAPowerFailureAndTakesFewWaits) {
  for (const bool names_go_along : {false, true}) {
    OrderedDisk disk;
    disk.names_go_along = names_go_along;
    Options durable = options();
    durable.path = folder() / (names_go_along ? "journal" : "any");
    durable.durability = Durability::kPower;
    durable.disk = &disk;
    Store store(durable);
    EXPECT_EQ(store.put_many(Many(0, 300)), 300U);
    EXPECT_EQ(disk.unsynced(), 0U);
    EXPECT_LT(disk.syncs, 620) << "a folder is waited for once, however many of its names are new";
    EXPECT_TRUE(!names_go_along || disk.syncs == 300) << disk.syncs;
    disk.syncs = 0;
    store.put(key_number(1000), numbered(1000));
    EXPECT_EQ(disk.unsynced(), 0U);
    EXPECT_TRUE(!names_go_along || disk.syncs == 1) << disk.syncs;
  }
}

TEST_F(StoreManyTest, WhatReplacesAnEntryIsOnTheDiskBeforeItTakesItsPlace) {
  for (const bool names_go_along : {false, true}) {
    OrderedDisk disk;
    disk.names_go_along = names_go_along;
    Options durable = options();
    durable.path = folder() / (names_go_along ? "journal" : "any");
    durable.durability = Durability::kPower;
    durable.disk = &disk;
    Store store(durable);
    store.put_many(Many(0, 10));
    store.put(key_number(1), numbered(1));
    store.put_many(Many(0, 10));
    EXPECT_EQ(disk.replaced_before_sync, 0);
    EXPECT_EQ(disk.unsynced(), 0U);
  }
}

TEST_F(StoreManyTest, ANewEntryHasItsNameBeforeItsContentIsWaitedFor) {
  OrderedDisk disk;
  disk.folder = fs::canonical(folder().parent_path()) / folder().filename();
  Options durable = options();
  durable.durability = Durability::kPower;
  durable.disk = &disk;
  Store store(durable);
  EXPECT_TRUE(store.put(key_number(1), numbered(1)).stored());
  store.put_many(Many(2, 10));
  EXPECT_EQ(disk.synced_without_name, 0) << "the journal would be written for the content, and again for the name";
}

TEST_F(StoreManyTest, OfAKeyThatComesTwiceTheLastStays) {
  Store store(options());
  store.put(key_number(1), numbered(5));
  const std::vector<Tensor> seven = numbered(7);
  const std::vector<Tensor> eight = numbered(8);
  const std::vector<NewEntry> entries = {
      {key_number(1), views_of(seven)}, {key_number(2), views_of(seven)}, {key_number(1), views_of(eight)}};
  EXPECT_EQ(store.put_many(entries), 3U);
  EXPECT_TRUE(is_numbered(*store.get(key_number(1)), 8));
  EXPECT_TRUE(is_numbered(*store.get(key_number(2)), 7));
  EXPECT_EQ(store.statistics().entries, 2U);
}

TEST_F(StoreManyTest, WaitsForWhoComputesAndHoldsNothingMeanwhile) {
  Store store(options());
  Store other(options());  // stands for another process
  auto claim = other.try_claim(key_number(3));
  ASSERT_TRUE(claim);
  const Many many(0, 6);
  const Store::Got got = store.try_put_many(many);
  EXPECT_EQ(got.through, 3U);
  EXPECT_EQ(got.stored, 3U);
  std::jthread putting([&] { EXPECT_EQ(store.put_many(many), 6U); });
  // If it held the other claims while waiting, two concurrent puts could deadlock.
  for (const std::uint64_t number : {0, 1, 2, 4, 5}) {
    other.claim(key_number(number));
  }
  claim.reset();
  putting.join();
  expect_all(other, 0, 6);
}

TEST_F(StoreManyTest, TwoThatPutTheSameInOppositeOrderBothEnd) {
  const auto put = [&](bool backwards) {
    Store store(options());
    Many many(0, 200);
    std::vector<NewEntry> entries(std::span<const NewEntry>(many).begin(), std::span<const NewEntry>(many).end());
    if (backwards) {
      std::reverse(entries.begin(), entries.end());
    }
    EXPECT_EQ(store.put_many(entries), 200U);
  };
  {
    std::jthread one(put, false);
    std::jthread other(put, true);
  }
  Store store(options());
  expect_all(store, 0, 200);
  EXPECT_EQ(store.statistics().entries, 200U);
}

TEST_F(StoreManyTest, TheBoundHoldsAndWhatIsUsedAgainStays) {
  Options bounded = options();
  bounded.max_bytes = 100 * kEntryBytes;
  bounded.hot_entries = 0;
  Store store(bounded);
  store.put_many(Many(0, 20));
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t number = 0; number < 20; ++number) {
      store.get(key_number(number));
    }
  }
  EXPECT_EQ(store.put_many(Many(1000, 1000)), 1000U);
  EXPECT_LE(store.statistics().bytes, *bounded.max_bytes);
  std::uint64_t on_disk = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder() / "v1/blobs")) {
    on_disk += entry.is_regular_file() ? entry.file_size() : 0;
  }
  EXPECT_EQ(on_disk, store.statistics().bytes);
  expect_all(store, 0, 20);
}

TEST_F(StoreManyTest, AnEntryThatIsTooLargeKeepsNoOtherOut) {
  Options bounded = options();
  bounded.max_bytes = 100 * kEntryBytes;
  Store store(bounded);
  const std::vector<Tensor> small = numbered(1);
  const std::vector<Tensor> large = numbered(2, 100'000);
  const std::vector<NewEntry> entries = {
      {key_number(2), views_of(large)}, {key_number(1), views_of(small)}, {key_number(3), views_of(large)}};
  EXPECT_EQ(store.put_many(entries), 1U);
  EXPECT_TRUE(store.get(key_number(1)));
  EXPECT_THAT(told_, SizeIs(1));
}

TEST_F(StoreManyTest, WhatIsNoEntryIsRefused) {
  Store store(options());
  const std::vector<Tensor> good = numbered(1);
  std::vector<TensorView> twice = views_of(good);
  twice.push_back(twice.front());
  const std::vector<NewEntry> entries = {{key_number(1), views_of(good)}, {key_number(2), twice}};
  EXPECT_THROW(store.put_many(entries), Error);
  EXPECT_TRUE(store.try_claim(key_number(1)));
  EXPECT_TRUE(store.try_claim(key_number(2)));
}

TEST_F(StoreManyTest, FewOpenFilesAreEnough) {
  Options durable = options();
  durable.durability = Durability::kPower;
  Store store(durable);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  const int next = ::dup(0);
  ::close(next);
  few.rlim_cur = static_cast<rlim_t>(next) + 20;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const std::size_t stored = store.put_many(Many(0, 300));
  const std::size_t replaced = store.put_many(Many(0, 300));
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(stored, 300U);
  EXPECT_EQ(replaced, 300U);
  EXPECT_THAT(told_, SizeIs(0));
  expect_all(store, 0, 300);
}

TEST_F(StoreManyTest, WhereverTheDiskFailsWhatIsSaidToBeStoredIsThere) {
  constexpr std::uint64_t kCount = 6;
  std::uint64_t round = 0;
  for (const bool names_go_along : {false, true}) {
    unidle::testing::at_each_failure([&](unidle::testing::FailingDisk& disk) {
      disk.names_go_along = names_go_along;
      const std::uint64_t first = kCount * round++;
      Options durable = options();
      durable.durability = Durability::kPower;
      durable.disk = &disk;
      disk.calls -= 1'000'000;  // not while it is being opened
      Store store(durable);
      disk.calls = 0;
      const std::size_t stored = store.put_many(Many(first, kCount));
      const bool failed = disk.failed();
      disk.fail_from = unidle::testing::FailingDisk::kNever;
      std::size_t there = 0;
      for (std::uint64_t number = first; number < first + kCount; ++number) {
        const auto entry = store.get(key_number(number));
        ASSERT_TRUE(!entry || is_numbered(*entry, number));
        there += entry ? 1 : 0;
      }
      EXPECT_EQ(there, stored);
      EXPECT_TRUE(failed || stored == kCount);
      EXPECT_EQ(files_in(folder() / "v1/tmp"), 0U);
      EXPECT_EQ(store.verify().damaged, 0U);
      disk.fail_from = failed ? 0 : disk.fail_from.load();
    });
  }
  EXPECT_GT(round, 35U);
}

}  // namespace
}  // namespace unidle::cache
