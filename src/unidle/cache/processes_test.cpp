// Several processes that share a cache, and what remains when some of them are killed.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <deque>
#include <functional>
#include <random>
#include <thread>

#include "unidle/cache/testing/scratch_cache.h"

namespace unidle::cache {
namespace {

using testing::is_numbered;
using testing::key_number;
using testing::numbered;
using testing::ScratchCache;

/// Memory that children share with us.
template <typename T>
class Shared {
 public:
  explicit Shared(std::size_t count)
      : count_(count),
        values_(static_cast<std::atomic<T>*>(::mmap(nullptr, count * sizeof(std::atomic<T>), PROT_READ | PROT_WRITE,
                                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Shared() { ::munmap(values_, count_ * sizeof(std::atomic<T>)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  std::atomic<T>& operator[](std::size_t at) { return values_[at]; }

 private:
  std::size_t count_;
  std::atomic<T>* values_;
};

/// Runs `work` in a child, which exits with 0 when it returns true.
pid_t in_child(const std::function<bool()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    bool good = false;
    try {
      good = work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    ::_exit(good ? 0 : 1);
  }
  return pid;
}

int status_of_child(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

/// Waits for a step of the other side that is certain to happen.
void until(const std::function<bool()>& done) {
  while (!done()) {
    std::this_thread::yield();
  }
}

using ProcessesTest = ScratchCache;

TEST_F(ProcessesTest, EightThatAskForTheSameKeysComputeEachOnce) {
  constexpr std::size_t kProcesses = 8;
  constexpr std::size_t kKeys = 300;
  Shared<int> computed(kKeys);
  Shared<int> ready(1);
  std::vector<pid_t> children;
  for (std::size_t process = 0; process < kProcesses; ++process) {
    children.push_back(in_child([&, process] {
      Store store(options());
      ++ready[0];
      until([&] { return ready[0] == static_cast<int>(kProcesses); });
      std::mt19937 random(static_cast<unsigned>(process));
      bool right = true;
      for (std::size_t i = 0; i < 2 * kKeys; ++i) {
        const std::size_t number = i < kKeys ? i : random() % kKeys;
        const Entry entry = store.get_or_compute(key_number(number), [&] {
          ++computed[number];
          return numbered(number);
        });
        right = right && entry.stored() && is_numbered(entry, number);
      }
      return right;
    }));
  }
  for (const pid_t child : children) {
    EXPECT_EQ(status_of_child(child), 0);
  }
  for (std::size_t number = 0; number < kKeys; ++number) {
    EXPECT_EQ(computed[number], 1) << number;
  }
  Store store(options());
  EXPECT_EQ(store.statistics().entries, kKeys);
  EXPECT_EQ(store.verify().damaged, 0U);
}

TEST_F(ProcessesTest, AForkedProcessKeepsTheBoundThatWasSetMeanwhile) {
  const auto bounded = [&](std::uint64_t bytes) {
    auto chosen = options();
    chosen.max_bytes = bytes;
    return chosen;
  };
  Store store(bounded(1 << 30));
  { const Store later(bounded(1 << 25)); }
  EXPECT_EQ(status_of_child(in_child([&] { return store.statistics().max_bytes == 1U << 25; })), 0);
}

TEST_F(ProcessesTest, WhenTheComputingProcessIsKilledAnotherTakesOver) {
  Shared<int> state(1);
  const pid_t first = in_child([&] {
    Store store(options());
    store.get_or_compute(key_number(1), [&]() -> std::vector<Tensor> {
      state[0] = 1;
      for (;;) {
        ::pause();
      }
    });
    return false;
  });
  until([&] { return state[0] == 1; });
  const pid_t second = in_child([&] {
    Store store(options());
    state[0] = 2;
    return is_numbered(store.get_or_compute(key_number(1), [] { return numbered(1); }), 1);
  });
  until([&] { return state[0] == 2; });
  EXPECT_EQ(::waitpid(second, nullptr, WNOHANG), 0) << "it waits for the first";
  ::kill(first, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(status_of_child(first)));
  EXPECT_EQ(status_of_child(second), 0);
}

TEST_F(ProcessesTest, AForkedChildNeitherHoldsTheParentsClaimsNorLosesTheCache) {
  Shared<int> state(1);
  const pid_t parent = in_child([&] {
    Store store(options());
    store.put(key_number(7), numbered(7));
    const auto claim = store.try_claim(key_number(1));
    const pid_t child = in_child([&] {
      const bool serves = is_numbered(*store.get(key_number(7)), 7) && !store.try_claim(key_number(1)) &&
                          store.put(key_number(8), numbered(8)).stored();
      state[0] = serves ? 1 : -1;
      until([&] { return state[0] == 2; });  // outlives its parent
      return true;
    });
    until([&] { return state[0] != 0; });
    return child > 0 && claim.has_value() && ::pause() == 0;
  });
  until([&] { return state[0] != 0; });
  EXPECT_EQ(state[0], 1);
  ::kill(parent, SIGKILL);
  status_of_child(parent);
  Store store(options());
  EXPECT_TRUE(store.try_claim(key_number(1))) << "the child holds what its parent had";
  EXPECT_TRUE(is_numbered(*store.get(key_number(8)), 8));
  state[0] = 2;
}

TEST_F(ProcessesTest, KilledAtAnyMomentNothingPromisedIsLostAndNothingIsLeft) {
  constexpr std::size_t kRounds = 60;
  constexpr std::size_t kKeys = 400;
  Shared<int> promised(kKeys);
  std::mt19937 random(5);
  Options bounded = options();
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<pid_t> children;
    Shared<int> work_done(1);
    for (unsigned process = 0; process < 3; ++process) {
      children.push_back(in_child([&, process] {
        Store store(bounded);
        std::mt19937 own(static_cast<unsigned>(round) * 10 + process);
        for (;;) {
          const std::size_t number = own() % kKeys;
          if (own() % 50 == 0) {
            store.prune();
          } else if (store.put(key_number(number), numbered(number)).stored()) {
            promised[number] = 1;
          }
          ++work_done[0];
        }
        return true;
      }));
    }
    const int enough = static_cast<int>(random() % 60);
    until([&] { return work_done[0] >= enough; });
    for (const pid_t child : children) {
      ::kill(child, SIGKILL);
      status_of_child(child);
    }
    Store store(options());
    ASSERT_EQ(files_in(folder() / "v1/tmp"), 0U);
    for (std::size_t number = 0; number < kKeys; ++number) {
      const auto entry = store.get(key_number(number));
      ASSERT_TRUE(entry || promised[number] == 0) << number;
      ASSERT_TRUE(!entry || is_numbered(*entry, number)) << number;
      ASSERT_TRUE(store.try_claim(key_number(number)));
    }
  }
  EXPECT_EQ(files_in(folder() / "v1/damaged"), 0U);
  Store store(options());
  const Verified verified = store.verify();
  EXPECT_EQ(verified.damaged, 0U);
  EXPECT_EQ(verified.checked, store.statistics().entries);
  EXPECT_EQ(verified.bytes, store.statistics().bytes);
}

TEST_F(ProcessesTest, KillsWhileEvictingLeaveNoBlobThatTheIndexDoesNotKnow) {
  constexpr std::uint64_t kMost = 30 * 704;
  std::mt19937 random(6);
  for (unsigned round = 0; round < 40; ++round) {
    Shared<int> work_done(1);
    std::vector<pid_t> children;
    for (unsigned process = 0; process < 3; ++process) {
      children.push_back(in_child([&, process] {
        Options bounded = options();
        bounded.max_bytes = kMost;
        Store store(bounded);
        std::mt19937 own(round * 10 + process);
        for (;;) {
          const std::uint64_t number = own() % 200;
          const Entry entry = store.get_or_compute(key_number(number), [&] { return numbered(number); });
          if (!is_numbered(entry, number)) {
            return false;
          }
          ++work_done[0];
        }
      }));
    }
    const int enough = static_cast<int>(random() % 100);
    until([&] { return work_done[0] >= enough; });
    for (const pid_t child : children) {
      ::kill(child, SIGKILL);
      EXPECT_TRUE(WIFSIGNALED(status_of_child(child)));
    }
    // A row may lack its blob, so the sum of the rows is an upper bound.
    std::uint64_t on_disk = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder() / "v1/blobs")) {
      on_disk += entry.is_regular_file() ? entry.file_size() : 0;
    }
    ASSERT_LE(on_disk, kMost);
    ASSERT_LE(on_disk, Store(options()).statistics().bytes);
  }
}

TEST_F(ProcessesTest, ReadersAreServedRightWhileOthersPrune) {
  Shared<int> stop(1);
  const pid_t pruner = in_child([&] {
    Store store(options());
    while (stop[0] == 0) {
      store.prune(5 * 704);
    }
    return true;
  });
  Options cold = options();
  cold.hot_entries = 0;
  cold.hot_bytes = 0;
  Store store(cold);
  std::deque<std::pair<std::uint64_t, Entry>> held;  // like training, which holds the batches it works on
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t number = i * 7 % 50;
    held.emplace_back(number, store.get_or_compute(key_number(number), [&] { return numbered(number); }));
    ASSERT_TRUE(is_numbered(held.back().second, number));
    if (const auto found = store.get(key_number(number))) {
      held.emplace_back(number, *found);  // backed by the file
    }
    while (held.size() > 20) {
      ASSERT_TRUE(is_numbered(held.front().second, held.front().first)) << "it was changed while it was held";
      held.pop_front();
    }
  }
  stop[0] = 1;
  EXPECT_EQ(status_of_child(pruner), 0);
  EXPECT_EQ(store.verify().damaged, 0U);
}

}  // namespace
}  // namespace unidle::cache
