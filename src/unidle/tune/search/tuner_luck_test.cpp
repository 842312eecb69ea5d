// Searches on a machine that is noisy, busy, or slowing down.
#include <gmock/gmock.h>

#include <cstdint>

#include "unidle/tune/testing/whole_search.h"

namespace unidle::tune {
namespace {

using testing::at_rate;
using ::testing::Contains;
using testing::Factors;
using testing::FakeRunner;
using ::testing::HasSubstr;
using testing::product;
using testing::WholeSearch;

TEST(TunerLuck, ASlowMachineIsNotMistakenForASlowKnob) {
  WholeSearch fixture;
  int number = 0;
  FakeRunner runner(fixture.clock, [&](const knobs::Settings& changes) {
    TrialResult result =
        product(changes, {{"loader.workers", {{"2", 1.5}}}, {"layout.channels_last", {{"true", 1.4}}}});
    ++number;
    result.rate *= number >= 2 && number <= 7 ? 0.4 : 1;  // another process uses the CPUs for a while
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_EQ(outcome.best.at("loader.workers"), 2);
  EXPECT_EQ(outcome.best.at("layout.channels_last"), true);
  EXPECT_THAT(outcome.trials, Contains(::testing::Field(&LoggedTrial::stage, "reference")));
}

TEST(TunerLuck, AMachineThatGetsSlowerAllTheTimeChangesNothing) {
  const Factors factors = {{"loader.workers", {{"2", 1.5}}}, {"optimizer.fused", {{"true", 1.12}}}};
  int right = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    WholeSearch fixture;
    double slower = 1;
    FakeRunner runner(
        fixture.clock,
        [&](const knobs::Settings& changes) {
          TrialResult result = product(changes, factors);
          result.rate *= slower *= 0.985;
          return result;
        },
        0.008, seed);
    const TunerOutcome outcome = fixture.tune(runner);
    right += outcome.best.contains("loader.workers") && outcome.best.contains("optimizer.fused") &&
             outcome.verification && outcome.verification->shown;
  }
  EXPECT_GE(right, 18) << "of 20 seeds";
}

TEST(TunerLuck, AGainThatIsSmallTakesMorePairs) {
  const auto pairs_at = [](double factor, double noise) {
    WholeSearch fixture;
    FakeRunner runner(
        fixture.clock,
        [&](const knobs::Settings& changes) { return product(changes, {{"loader.workers", {{"2", factor}}}}); }, noise);
    const TunerOutcome outcome = fixture.tune(runner);
    return outcome.verification ? outcome.verification->winner.size() : 0;
  };
  EXPECT_EQ(pairs_at(1.5, 0.005), 3u);
  EXPECT_GE(pairs_at(1.06, 0.005), 6u);
}

TEST(TunerLuck, SaysWhenTheMachineWasNotQuiet) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    result.others_cpus = 1.2;
    return result;
  });
  EXPECT_THAT(fixture.tune(runner).conclusion, HasSubstr("other processes"));
}

const knobs::Settings kFourKnobs = {
    {"loader.workers", 0}, {"optimizer.fused", false}, {"layout.channels_last", false}, {"cache.features", "off"}};

std::vector<Proposal> four_at_once() {
  return {{{{"loader.workers", 2}}, "", 0.5, true},
          {{{"cache.features", "memory"}}, "", 0.4, true},
          {{{"layout.channels_last", true}}, "", 0.3, true},
          {{{"optimizer.fused", true}}, "", 0.2, true}};
}

/// The search's outcome when the two least promising changes together give `gain`, and their first run without them
/// appears to be `lucky` times as fast.
knobs::Settings found(double gain, double lucky) {
  unidle::testing::FakeClock clock;
  int without = 0;
  FakeRunner runner(clock, [&](const knobs::Settings& changes) {
    const bool small_ones = changes.contains("layout.channels_last") || changes.contains("optimizer.fused");
    const double large_ones = changes.contains("loader.workers") && changes.contains("cache.features") ? 2 : 1;
    if (large_ones == 2 && !small_ones) {
      return at_rate(++without == 1 ? 200 * lucky : 200);
    }
    return at_rate(100 * large_ones * (small_ones ? gain : 1));
  });
  return Tuner(runner, clock, kFourKnobs, four_at_once(), {}).run({}).best;
}

/// The first runs share the CPUs with a process that takes five sixths of the speed.
knobs::Settings found_beside_others(int disturbed_runs) {
  unidle::testing::FakeClock clock;
  int runs = 0;
  FakeRunner runner(clock, [&](const knobs::Settings& changes) {
    const bool disturbed = ++runs <= disturbed_runs;
    TrialResult result = at_rate((changes.contains("loader.workers") ? 200 : 100) / (disturbed ? 6.0 : 1.0));
    result.others_cpus = disturbed ? 1.0 : 0.0;
    return result;
  });
  return Tuner(runner, clock, kFourKnobs, {{{{"loader.workers", 2}}, "", 0.5, true}}, {}).run({}).best;
}

TEST(TunerLuck, ARunThatOthersDisturbedIsNotComparedWithOneThatTheyDidNot) {
  for (const int disturbed_runs : {0, 1, 2, 3, 100}) {
    EXPECT_EQ(found_beside_others(disturbed_runs), (knobs::Settings{{"loader.workers", 2}})) << disturbed_runs;
  }
}

/// How many of 40 searches find a gain of a twentieth when runs of one setting scatter.
int searches_that_find_it(double scatter) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    unidle::testing::FakeClock clock;
    FakeRunner runner(
        clock,
        [](const knobs::Settings& changes) {
          return at_rate(100 * (changes.contains("loader.workers") ? 0.8 : 1) *
                         (changes.contains("optimizer.fused") ? 1.05 : 1));
        },
        scatter, seed);
    const std::vector<Proposal> proposals = {{{{"loader.workers", 2}}, "", 0.5, false},
                                             {{{"optimizer.fused", true}}, "", 0.2, false}};
    found += Tuner(runner, clock, kFourKnobs, proposals, {}).run({}).best == knobs::Settings{{"optimizer.fused", true}}
                 ? 1
                 : 0;
  }
  return found;
}

TEST(TunerLuck, ASmallGainIsSeenThroughScatter) {
  EXPECT_EQ(searches_that_find_it(0.005), 40);
  EXPECT_GE(searches_that_find_it(0.03), 33);
}

TEST(TunerLuck, TakesBackWhatGivesNothing) { EXPECT_EQ(found(1.0, 1.0).size(), 2u); }

TEST(TunerLuck, OneLuckyRunDoesNotTakeSeveral) {
  const knobs::Settings kept = found(1.06, 1.08);
  EXPECT_TRUE(kept.has("loader.workers", 2) && kept.has("cache.features", "memory")) << knobs::describe(kept);
  EXPECT_TRUE(kept.contains("layout.channels_last") || kept.contains("optimizer.fused"));
}

}  // namespace
}  // namespace unidle::tune
