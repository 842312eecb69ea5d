#include "unidle/tune/search/contest.h"

#include <gmock/gmock.h>

#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune {
namespace {

using testing::at_rate;
using ::testing::ElementsAre;
using testing::FakeRunner;
using ::testing::HasSubstr;

/// A contest whose baseline has run.
struct Arena {
  explicit Arena(FakeRunner::Surface surface, double budget_s = 600)
      : runner(clock, std::move(surface)), log(runner, stop.get_token(), {}), budget(clock, budget_s, 12) {
    LoggedTrial baseline = log.measure({}, "baseline", 600);
    repeats.add(baseline.result);
    contest.begin(baseline.result);
    log.add(std::move(baseline));
  }

  std::vector<std::string> stages() const {
    std::vector<std::string> found;
    for (const LoggedTrial& trial : log.trials()) {
      found.push_back(trial.stage);
    }
    return found;
  }

  unidle::testing::FakeClock clock;
  std::stop_source stop;
  FakeRunner runner;
  TrialLog log;
  Budget budget;
  Repeats repeats{knobs::Settings{}};
  Refusals refusals;
  Contest contest{log, budget, repeats, refusals};
};

const knobs::Settings kChange = {{"loader.workers", 2}};

FakeRunner::Surface faster_by(double factor) {
  return [factor](const knobs::Settings& changes) { return at_rate(changes.empty() ? 100 : 100 * factor); };
}

TEST(Contest, WhatIsFasterIsTheBest) {
  Arena arena(faster_by(1.5));
  const auto [judgement, ratio] = arena.contest.challenge(kChange, "step", "two workers", 1);
  EXPECT_EQ(judgement, Judgement::kBetter);
  EXPECT_NEAR(ratio, 1.5, 1e-12);
  EXPECT_EQ(arena.contest.best().settings, kChange);
  EXPECT_EQ(arena.contest.best().result.rate, 150);
  EXPECT_EQ(arena.log.trials().back().verdict, "kept");
  EXPECT_EQ(arena.log.trials().back().why, "two workers; 1.500x of the best so far");
  EXPECT_THAT(arena.stages(), ElementsAre("baseline", "step"));
}

TEST(Contest, WhatIsNoFasterChangesNothing) {
  Arena arena(faster_by(0.9));
  EXPECT_EQ(arena.contest.challenge(kChange, "step", "", 1).judgement, Judgement::kNoGain);
  EXPECT_TRUE(arena.contest.best().settings.empty());
  EXPECT_EQ(arena.log.trials().back().verdict, "no gain");
}

TEST(Contest, WhatOneRunLeavesOpenIsDecidedInTurns) {
  Arena arena(faster_by(1.02));
  EXPECT_EQ(arena.contest.challenge(kChange, "step", "", 1).judgement, Judgement::kBetter);
  EXPECT_THAT(arena.stages(), ElementsAre("baseline", "reference", "again", "step"))
      << "until the runs are known to lie closer together than the gain";
}

TEST(Contest, OneRunOfAGroupIsConfirmed) {
  Arena arena(faster_by(1.5));
  EXPECT_EQ(arena.contest.challenge(kChange, "removal", "", 1, true).judgement, Judgement::kBetter);
  EXPECT_THAT(arena.stages(), ElementsAre("baseline", "reference", "again", "removal"));
  EXPECT_EQ(arena.log.trials().back().verdict, "reverted");
}

TEST(Contest, KeepsThePairsWithTheUnchangedProgram) {
  Arena arena(faster_by(1.5));
  arena.contest.challenge(kChange, "step", "", 1);
  ASSERT_EQ(arena.contest.best().pairs.size(), 1u);
  EXPECT_EQ(arena.contest.best().pairs.front().a.value, 100);
  EXPECT_EQ(arena.contest.best().pairs.front().b.value, 150);
  arena.contest.challenge({{"loader.workers", 2}, {"optimizer.fused", true}}, "removal", "", -0.75);
  EXPECT_TRUE(arena.contest.best().pairs.empty()) << "compared with two workers";
}

TEST(Contest, ATrialMayNotUseWhatIsKeptForVerification) {
  Arena arena(
      [](const knobs::Settings& changes) {
        TrialResult result = at_rate(100);
        result.seconds = changes.empty() ? 5 : 60;
        return result;
      },
      60);
  EXPECT_EQ(arena.contest.challenge(kChange, "step", "", 1).judgement, Judgement::kRejected);
  EXPECT_EQ(arena.log.trials().back().verdict, "failed");
  EXPECT_TRUE(arena.budget.allows_s(arena.budget.pair_s()));
}

TEST(Contest, WithoutTimeOneRunDecides) {
  Arena arena(faster_by(1.02), 30);
  EXPECT_EQ(arena.contest.challenge(kChange, "step", "", 1).judgement, Judgement::kBetter);
  EXPECT_THAT(arena.stages(), ElementsAre("baseline", "step"));
}

TEST(Contest, AWorseLossIsRejectedOnceTheProgramIsKnownToRepeatItself) {
  Arena arena([](const knobs::Settings& changes) {
    TrialResult result = at_rate(changes.empty() ? 100 : 200);
    result.loss = changes.empty() ? 1.0 : 1.3;
    return result;
  });
  EXPECT_EQ(arena.contest.challenge(kChange, "step", "", 1).judgement, Judgement::kRejected);
  EXPECT_THAT(arena.stages(), ElementsAre("baseline", "reference", "step"));
  EXPECT_EQ(arena.log.trials().back().verdict, "parity broken");
  EXPECT_TRUE(arena.contest.best().settings.empty());
}

TEST(Contest, WhatFailsOrDidNotTakeIsRejected) {
  Arena arena([](const knobs::Settings& changes) {
    TrialResult result = at_rate(200);
    result.ok = !changes.contains("loader.workers");
    result.problem = result.ok ? "" : "out of memory";
    result.refused = {{"cpu.threads", "why"}};
    return result;
  });
  EXPECT_EQ(arena.contest.challenge(kChange, "step", "", 1).judgement, Judgement::kRejected);
  EXPECT_THAT(arena.log.trials().back().why, HasSubstr("out of memory"));
  EXPECT_EQ(arena.contest.challenge({{"cpu.threads", 2}}, "step", "", 1).judgement, Judgement::kRejected);
  EXPECT_EQ(arena.log.trials().back().verdict, "not taken");
}

TEST(Contest, AStopLeavesTheBestAlone) {
  Arena arena(faster_by(1.5));
  arena.runner.before = [&](int) { arena.stop.request_stop(); };
  EXPECT_EQ(arena.contest.challenge(kChange, "step", "", 1).judgement, Judgement::kStopped);
  EXPECT_TRUE(arena.contest.best().settings.empty());
  EXPECT_EQ(arena.log.trials().size(), 1u);
}

TEST(Contest, GoesBackToAnEarlierBest) {
  Arena arena(faster_by(1.5));
  const Best before = arena.contest.best();
  arena.contest.challenge(kChange, "step", "", 1);
  arena.contest.restore(before);
  EXPECT_TRUE(arena.contest.best().settings.empty());
  EXPECT_EQ(arena.contest.best().result.rate, 100);
}

}  // namespace
}  // namespace unidle::tune
