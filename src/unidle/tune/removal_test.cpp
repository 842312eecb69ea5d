// What came in together is taken back only when that costs nothing, and not because of one lucky run.
#include <gmock/gmock.h>

#include "unidle/tune/testing/fake_runner.h"
#include "unidle/tune/tuner.h"

namespace unidle::tune {
namespace {

using testing::at_rate;
using testing::FakeRunner;
using ::testing::IsSupersetOf;

const Settings kFourKnobs = {{"loader.workers", "0"},
                           {"optimizer.fused", "false"},
                           {"layout.channels_last", "false"},
                           {"cache.features", "off"}};

std::vector<Proposal> four_at_once() {
  return {{{{"loader.workers", "2"}}, "", 0.5, true},
          {{{"cache.features", "memory"}}, "", 0.4, true},
          {{{"layout.channels_last", "true"}}, "", 0.3, true},
          {{{"optimizer.fused", "true"}}, "", 0.2, true}};
}

/// The search's outcome where the two least promising ones together give `gain`, and their first run without them
/// seems to be as fast as `lucky` says.
Settings found(double gain, double lucky) {
  unidle::testing::FakeClock clock;
  int without = 0;
  FakeRunner runner(clock, [&](const Settings& changes) {
    const bool small_ones = changes.contains("layout.channels_last") || changes.contains("optimizer.fused");
    const double large_ones = changes.contains("loader.workers") && changes.contains("cache.features") ? 2 : 1;
    if (large_ones == 2 && !small_ones) {
      return at_rate(++without == 1 ? 200 * lucky : 200);
    }
    return at_rate(100 * large_ones * (small_ones ? gain : 1));
  });
  return Tuner(runner, clock, kFourKnobs, four_at_once(), {}).run({}).best;
}

TEST(Removal, TakesBackWhatGivesNothing) { EXPECT_EQ(found(1.0, 1.0).size(), 2u); }

TEST(Removal, OneLuckyRunDoesNotTakeSeveral) {
  const Settings kept = found(1.06, 1.08);
  EXPECT_THAT(kept, IsSupersetOf({::testing::Pair("loader.workers", "2"), ::testing::Pair("cache.features", "memory")}));
  EXPECT_TRUE(kept.contains("layout.channels_last") || kept.contains("optimizer.fused"));
}

}  // namespace
}  // namespace unidle::tune
