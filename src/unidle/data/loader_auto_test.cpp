// Workers that are added and removed automatically.
#include <gtest/gtest.h>

#include <thread>

#include "unidle/data/loader.h"
#include "unidle/data/testing/number_source.h"

namespace unidle::data {
namespace {

using testing::NumberSource;
using testing::take;

TEST(LoaderAutoTest, DeliversWhatAnyNumberOfWorkersDoes) {
  for (const std::int64_t per_item : {1, 3}) {
    const NumberSource source(50, per_item);
    Loader plain(source, {.batch = 4, .seed = 2});
    Loader loader(source, {.batch = 4, .workers = kAutoWorkers, .prefetch = 4, .seed = 2});
    EXPECT_GE(loader.workers(), 1);
    for (int round = 0; round < 8; ++round) {
      ASSERT_EQ(take(loader, 50), take(plain, 50)) << round;
      std::this_thread::sleep_for(std::chrono::milliseconds(60));  // ends a window, with a different share of waiting
    }
  }
}

TEST(LoaderAutoTest, ASlowConsumerIsServedByOneWorkerThatIsNotAheadOfTheDepth) {
  const NumberSource source(100, 1);
  constexpr std::int64_t kBatch = 4;
  Loader loader(source, {.batch = kBatch, .workers = kAutoWorkers, .prefetch = 8, .seed = 2});
  std::int64_t taken = 0;
  const auto step = [&] {
    loader.next();
    ++taken;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  while (loader.active_workers() > 1 || loader.depth() > 4) {  // the test's time limit bounds this loop
    step();
  }
  for (int i = 0; i < 40; ++i) {  // until the batches prefetched earlier are taken
    step();
  }
  const std::int64_t ahead = source.reads() / kBatch - taken;
  EXPECT_LE(ahead, loader.depth() + 1);
}

}  // namespace
}  // namespace unidle::data
