#include "unidle/train/ranks/peer_watch.h"

#include <gmock/gmock.h>

#include <array>
#include <future>

#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace unidle::train {
namespace {

using Gloo = c10d::ProcessGroupGloo;

constexpr std::chrono::seconds kPatience{60};

/// Three ranks in one process, each with its connections and a watch.
class PeerWatchTest : public ::testing::Test {
 protected:
  struct Rank {
    c10::intrusive_ptr<c10d::Backend> gloo;
    std::promise<void> lost;
    std::future<void> loss = lost.get_future();
    std::unique_ptr<PeerWatch> watch;
  };

  void SetUp() override {
    const auto store = c10::make_intrusive<c10d::HashStore>();
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([this, store, i] {
        auto options = Gloo::Options::create(kPatience);
        options->devices.push_back(Gloo::createDeviceForHostname("127.0.0.1"));
        Rank& rank = ranks_.at(static_cast<std::size_t>(i));
        rank.gloo = c10::make_intrusive<Gloo>(store, i, 3, options);
        rank.watch = std::make_unique<PeerWatch>(rank.gloo, [&rank] { rank.lost.set_value(); });
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  void leave(std::size_t i) {
    ranks_.at(i).watch.reset();
    ranks_.at(i).gloo.reset();
  }
  static bool lost(Rank& rank, std::chrono::seconds patience) {
    return rank.loss.wait_for(patience) == std::future_status::ready;
  }

  std::array<Rank, 3> ranks_;
};

TEST_F(PeerWatchTest, ARankThatGoesWithoutAWordIsMissedByTheNext) {
  leave(1);
  EXPECT_TRUE(lost(ranks_[2], kPatience));
  leave(2);  // as a rank does that lost another one
  EXPECT_TRUE(lost(ranks_[0], kPatience));
}

TEST_F(PeerWatchTest, RanksThatAreDoneAreNotMissed) {
  for (const std::size_t i : {1U, 0U, 2U}) {
    ranks_[i].watch->done();
    leave(i);
  }
  for (Rank& rank : ranks_) {
    EXPECT_FALSE(lost(rank, std::chrono::seconds(0)));
  }
}

TEST_F(PeerWatchTest, WordsForThoseWhoWentAreSwallowed) {
  leave(1);
  EXPECT_TRUE(lost(ranks_[2], kPatience));
  ranks_[0].watch->done();
}

}  // namespace
}  // namespace unidle::train
