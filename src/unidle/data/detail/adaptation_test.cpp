// The pace that a loader finds in simulations of its threads, and that it stays there.
#include "unidle/data/detail/adaptation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "unidle/data/random.h"

namespace unidle::data::detail {
namespace {

/// Workers that make items one by one, in order, as far ahead as the depth allows, and a consumer that takes the
/// batches. A discrete-event simulation without clock or threads.
class SimulatedLoader {
 public:
  struct Machine {
    std::int64_t batch = 16;  // items
    double cpus = 8;
  };
  explicit SimulatedLoader(const Machine& machine) : machine_(machine), free_(64, 0.0) {}

  double item_s = 0.008;   // per item, for a worker with its own CPU
  double batch_s = 0.064;  // time the consumer works on a batch
  double neighbours = 0;   // other busy threads on these CPUs
  double item_noise = 0;   // relative standard deviation
  double consumer_noise = 0;
  std::int64_t pause_every = 0;  // the consumer pauses after this many batches
  double pause_s = 0;

  /// Simulates the next window at this pace.
  WaitWindow run(const Pace& pace, std::int64_t batches = 8) {
    WaitWindow window;
    const double start = consumer_free_;
    double consumer_waited = 0;
    double workers_waited = 0;
    window.fewest_ready = pace.depth;
    for (std::int64_t i = 0; i < batches; ++i) {
      while (made_ <= taken_ || (made_ < taken_ + pace.depth && next_start(pace) <= consumer_free_)) {
        workers_waited += make_batch(pace);
      }
      const double ready = complete_[static_cast<std::size_t>(taken_)];
      window.fewest_ready =
          std::min(window.fewest_ready,
                   static_cast<std::int64_t>(std::count_if(complete_.begin() + taken_, complete_.end(),
                                                           [this](double when) { return when <= consumer_free_; })));
      consumer_waited += std::max(0.0, ready - consumer_free_);
      consumer_free_ = std::max(consumer_free_, ready);
      take_.push_back(consumer_free_);
      ++taken_;
      const bool away = pause_every > 0 && taken_ % pause_every == 0;
      consumer_free_ += batch_s * varied(consumer_noise) + (away ? pause_s : 0);
    }
    const double span = consumer_free_ - start;
    window.consumer_wait = consumer_waited / span;
    window.worker_wait = std::clamp(workers_waited / (span * pace.workers), 0.0, 1.0);
    window.rate = static_cast<double>(batches * machine_.batch) / span;
    return window;
  }

 private:
  double varied(double deviation) {
    double sum = 0;  // of twelve uniform numbers: nearly normal
    for (int i = 0; i < 12; ++i) {
      sum += random_.unit();
    }
    return std::max(0.05, 1 + deviation * (sum - 6));
  }
  /// When the batch that is made next gets a slot.
  double open_at(const Pace& pace) const {
    const std::int64_t before = made_ - pace.depth;
    return before < 0 ? 0 : before < taken_ ? take_[static_cast<std::size_t>(before)] : consumer_free_;
  }
  double next_start(const Pace& pace) const {
    return std::max(open_at(pace), *std::min_element(free_.begin(), free_.begin() + pace.workers));
  }
  /// Returns the time the workers waited for a slot.
  double make_batch(const Pace& pace) {
    const double open = open_at(pace);
    const double crowd = std::max(1.0, (pace.workers + neighbours) / machine_.cpus);
    double waited = 0;
    double complete = 0;
    for (std::int64_t item = 0; item < machine_.batch; ++item) {
      double& free = *std::min_element(free_.begin(), free_.begin() + pace.workers);
      waited += std::max(0.0, open - free);
      free = std::max(free, open) + item_s * crowd * varied(item_noise);
      complete = std::max(complete, free);
    }
    // Inactive workers come back later, if ever.
    std::for_each(free_.begin() + pace.workers, free_.end(), [&](double& free) { free = std::max(free, open); });
    complete_.push_back(complete);
    ++made_;
    return waited;
  }

  Machine machine_;
  CounterRandom random_{2024};
  std::vector<double> free_;  // when each worker is free
  std::vector<double> complete_;
  std::vector<double> take_;
  std::int64_t made_ = 0;
  std::int64_t taken_ = 0;
  double consumer_free_ = 0;
};

constexpr Adaptation::Limits kLimits = {.most_workers = 8, .least_depth = 2, .most_depth = 16};
constexpr int kWindowsToSettle = 500;
constexpr int kWindowsToStay = 1500;

struct Settled {
  Pace pace;
  int steps = 0;             // after the pace should have settled
  double consumer_wait = 0;  // mean after that
  double rate = 0;
};

Settled settle(SimulatedLoader& loader, Adaptation& adaptation, int stay = kWindowsToStay) {
  for (int i = 0; i < kWindowsToSettle; ++i) {
    adaptation.next(loader.run(adaptation.pace()));
  }
  Settled settled{adaptation.pace()};
  for (int i = 0; i < stay; ++i) {
    const WaitWindow window = loader.run(adaptation.pace());
    settled.consumer_wait += window.consumer_wait / stay;
    settled.rate += window.rate / stay;
    settled.steps += adaptation.next(window) == settled.pace ? 0 : 1;
    settled.pace = adaptation.pace();
  }
  return settled;
}

/// The rate with the maximum of workers and depth.
double rate_with_most(SimulatedLoader loader) {
  double rate = 0;
  for (int i = 0; i < 200; ++i) {
    rate += loader.run({kLimits.most_workers, kLimits.most_depth}).rate / 200;
  }
  return rate;
}

TEST(AdaptationTest, BeginsWithTheMost) {
  const Adaptation adaptation(kLimits);
  EXPECT_EQ(adaptation.pace(), (Pace{8, 16}));
}

TEST(AdaptationTest, AFastConsumerKeepsAllWorkers) {
  SimulatedLoader loader({});
  loader.batch_s = 0.001;
  Adaptation adaptation(kLimits);
  const Settled settled = settle(loader, adaptation);
  EXPECT_EQ(settled.pace.workers, 8);
  EXPECT_EQ(settled.steps, 0);
  EXPECT_GE(settled.rate, 0.98 * rate_with_most(loader));
}

TEST(AdaptationTest, ASlowConsumerIsLeftTheLeast) {
  SimulatedLoader loader({});
  loader.batch_s = 2;  // one worker makes a batch in 0.13 s
  Adaptation adaptation(kLimits);
  const Settled settled = settle(loader, adaptation);
  EXPECT_EQ(settled.pace, (Pace{1, 2}));
  EXPECT_EQ(settled.steps, 0);
  EXPECT_LT(settled.consumer_wait, 0.01);
}

TEST(AdaptationTest, AConsumerInBetweenGetsWhatItNeeds) {
  for (const double needed : {1.4, 2.3, 3.1, 4.5, 6.2}) {
    SimulatedLoader loader({});
    loader.batch_s = 16 * loader.item_s / needed;
    Adaptation adaptation(kLimits);
    const Settled settled = settle(loader, adaptation);
    EXPECT_GE(settled.pace.workers, needed);
    EXPECT_LE(settled.pace.workers, needed / 0.8 + 1) << needed;
    EXPECT_EQ(settled.steps, 0) << needed;
    EXPECT_LT(settled.consumer_wait, 0.03) << needed;
  }
}

TEST(AdaptationTest, FollowsAConsumerThatChangesItsPaceBothWays) {
  SimulatedLoader loader({});
  Adaptation adaptation(kLimits);
  const double slow_s = 16 * loader.item_s / 1.5;
  const double fast_s = 16 * loader.item_s / 5;
  for (int round = 0; round < 3; ++round) {
    loader.batch_s = slow_s;
    Settled settled = settle(loader, adaptation, 500);
    EXPECT_LE(settled.pace.workers, 3) << round;
    EXPECT_EQ(settled.steps, 0) << round;
    loader.batch_s = fast_s;
    settled = settle(loader, adaptation, 500);
    EXPECT_GE(settled.pace.workers, 5) << round;
    EXPECT_LE(settled.pace.workers, 7) << round;
    EXPECT_EQ(settled.steps, 0) << round;
    EXPECT_LT(settled.consumer_wait, 0.03) << round;
  }
}

TEST(AdaptationTest, NoiseIsLearnedOnceAndMovesNothingThen) {
  for (const double noise : {0.1, 0.3, 0.6}) {
    for (const double needed : {1.5, 3.0, 5.5}) {
      SimulatedLoader loader({});
      loader.item_noise = noise;
      loader.consumer_noise = noise;
      loader.batch_s = 16 * loader.item_s / needed;
      const double most = rate_with_most(loader);
      Adaptation adaptation(kLimits);
      int steps = 0;
      for (int round = 0; round < 3; ++round) {
        const Settled settled = settle(loader, adaptation);
        EXPECT_GE(settled.rate, 0.97 * most) << noise << " " << needed;
        steps += settled.steps;
      }
      EXPECT_LE(steps, noise < 0.5 ? 3 : 6) << noise << " " << needed;
      // At most one step is tried and undone, even when each batch takes 60 % more or less than the previous one.
      EXPECT_LE(settle(loader, adaptation).steps, noise < 0.5 ? 0 : 2) << noise << " " << needed;
    }
  }
}

TEST(AdaptationTest, ANeighbourThatTakesCpusIsMadeUpForAndForgotten) {
  SimulatedLoader loader({});
  loader.batch_s = 16 * loader.item_s / 1.5;
  Adaptation adaptation(kLimits);
  const Pace alone = settle(loader, adaptation).pace;
  EXPECT_LE(alone.workers, 3);
  loader.neighbours = 16;
  Settled settled = settle(loader, adaptation);
  EXPECT_GT(settled.pace.workers, alone.workers);
  EXPECT_EQ(settled.steps, 0);
  loader.neighbours = 0;
  settled = settle(loader, adaptation);
  EXPECT_LE(settled.pace.workers, alone.workers + 1);
  EXPECT_EQ(settled.steps, 0);
}

TEST(AdaptationTest, WorkersThatBringNothingAreGivenBack) {
  // One CPU: any number of workers is as fast as one.
  SimulatedLoader loader({.cpus = 1});
  Adaptation adaptation(kLimits);
  loader.batch_s = 4;
  EXPECT_EQ(settle(loader, adaptation).pace.workers, 1);
  loader.batch_s = 16 * loader.item_s / 1.5;
  const Settled settled = settle(loader, adaptation);
  EXPECT_EQ(settled.pace.workers, 1);
  EXPECT_EQ(settled.steps, 0);
}

TEST(AdaptationTest, ABurstingConsumerKeepsItsDepth) {
  SimulatedLoader loader({});
  loader.batch_s = 0.002;
  loader.pause_every = 8;
  loader.pause_s = 0.3;  // eight batches at once, then a pause
  Adaptation adaptation(kLimits);
  const Settled settled = settle(loader, adaptation);
  EXPECT_GE(settled.pace.depth, 8);
  EXPECT_EQ(settled.steps, 0);
  EXPECT_GE(settled.rate, 0.97 * rate_with_most(loader));
}

TEST(AdaptationTest, ASinglePauseIsNoSlowConsumer) {
  SimulatedLoader loader({});
  loader.batch_s = 16 * loader.item_s / 5.5;
  Adaptation adaptation(kLimits);
  const Pace before = settle(loader, adaptation).pace;
  loader.pause_every = 320;  // one window in forty, such as a validation
  loader.pause_s = 20;
  int steps = 0;
  for (int i = 0; i < 400; ++i) {
    steps += adaptation.next(loader.run(adaptation.pace())) == before ? 0 : 1;
  }
  EXPECT_EQ(steps, 0);
}

TEST(AdaptationTest, SaysTheSameForTheSameWindows) {
  std::vector<std::vector<Pace>> told(2);
  for (std::vector<Pace>& paces : told) {
    SimulatedLoader loader({});
    loader.item_noise = 0.5;
    Adaptation adaptation(kLimits);
    for (int i = 0; i < 300; ++i) {
      loader.batch_s = i % 100 < 50 ? 0.03 : 0.3;
      paces.push_back(adaptation.next(loader.run(adaptation.pace())));
      ASSERT_GE(paces.back().workers, 1);
      ASSERT_LE(paces.back().workers, 8);
      ASSERT_GE(paces.back().depth, 2);
      ASSERT_LE(paces.back().depth, 16);
    }
  }
  EXPECT_EQ(told[0], told[1]);
}

}  // namespace
}  // namespace unidle::data::detail
