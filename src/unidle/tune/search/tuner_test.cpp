#include "unidle/tune/search/tuner.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "unidle/base/error.h"
#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune {
namespace {

using ::testing::AllOf;
using testing::at_rate;
using ::testing::Contains;
using testing::FakeRunner;
using ::testing::HasSubstr;

using Factors = std::map<std::string, std::map<std::string, double>>;

/// Speed is a product of one factor a knob value; values without a factor change nothing.
TrialResult product(const knobs::Settings& changes, const Factors& factors) {
  double rate = 100;
  for (const auto& [knob, value] : changes) {
    const auto knob_factors = factors.find(knob);
    if (knob_factors != factors.end()) {
      const auto factor = knob_factors->second.find(value);
      rate *= factor == knob_factors->second.end() ? 1 : factor->second;
    }
  }
  return at_rate(rate);
}

double best_of(const Factors& factors) {
  double rate = 100;
  for (const auto& [knob, values] : factors) {
    double best = 1;
    for (const auto& [value, factor] : values) {
      best = std::max(best, factor);
    }
    rate *= best;
  }
  return rate;
}

const knobs::Settings kConfig = {{"loader.workers", "0"},         {"batch.size", "2"},
                                 {"batch.accumulation", "8"},     {"precision.amp", "off"},
                                 {"optimizer.fused", "false"},    {"layout.channels_last", "false"},
                                 {"metrics.interval", "1"},       {"cache.features", "off"},
                                 {"loader.prefetch_factor", "2"}, {"loader.persistent_workers", "true"}};

Hardware small_machine() {
  Hardware hardware;
  hardware.cpus = 4;
  hardware.cpu_bf16 = true;
  hardware.memory_bytes = 16ULL << 30;
  return hardware;
}

struct Fixture {
  unidle::testing::FakeClock clock;
  TunerOptions options;
  std::stop_source stop;

  TunerOutcome tune(FakeRunner& runner, const std::string& workload = "superres") {
    options.batches = batch_choices(kConfig, false);
    Tuner tuner(runner, clock, kConfig, propose(kConfig, workload, small_machine(), {}), options);
    return tuner.run(stop.get_token());
  }
};

int search_trials(const TunerOutcome& outcome) {
  return static_cast<int>(std::count_if(outcome.trials.begin(), outcome.trials.end(), [](const LoggedTrial& trial) {
    return !trial.stage.starts_with("verify") && trial.stage != "again" && trial.stage != "reference";
  }));
}

std::vector<Factors> surfaces() {
  return {
      {{"loader.workers", {{"2", 2.0}, {"4", 1.8}}}, {"cache.features", {{"memory", 1.5}}}},
      {{"layout.channels_last", {{"true", 1.3}}}, {"optimizer.fused", {{"true", 1.06}}}},
      {{"precision.amp", {{"bf16", 1.7}}}, {"batch.size", {{"16", 1.2}, {"8", 1.15}}}},
      {{"precision.amp", {{"bf16", 0.4}}}, {"loader.workers", {{"2", 1.4}}}, {"optimizer.fused", {{"true", 0.9}}}},
      {{"loader.workers", {{"2", 0.7}, {"1", 0.8}, {"4", 0.6}}}, {"layout.channels_last", {{"true", 1.5}}}},
      {{"batch.size", {{"16", 0.8}, {"8", 1.3}}}, {"metrics.interval", {{"50", 1.1}}}},
      {},
  };
}

class OnSurface : public ::testing::TestWithParam<int> {};

TEST_P(OnSurface, ComesWithinThreePercentOfTheBest) {
  const Factors factors = surfaces()[static_cast<std::size_t>(GetParam())];
  int within = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Fixture fixture;
    FakeRunner runner(
        fixture.clock, [&](const knobs::Settings& changes) { return product(changes, factors); }, 0.008, seed);
    const TunerOutcome outcome = fixture.tune(runner);
    knobs::Settings chosen;
    for (const Change& change : outcome.changes) {
      chosen[change.knob] = change.to;
    }
    EXPECT_LE(search_trials(outcome), 12);
    within += product(chosen, factors).rate >= 0.97 * best_of(factors);
  }
  EXPECT_GE(within, 19) << "of 20 seeds";
}

INSTANTIATE_TEST_SUITE_P(Surfaces, OnSurface, ::testing::Range(0, 7));

TEST(Tuner, TakesBackWhatGivesNothing) {
  const Factors factors = {{"loader.workers", {{"2", 2.0}}}};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Fixture fixture;
    FakeRunner runner(
        fixture.clock, [&](const knobs::Settings& changes) { return product(changes, factors); }, 0.004, seed);
    const TunerOutcome outcome = fixture.tune(runner);
    ASSERT_FALSE(outcome.changes.empty());
    // Only what the search had no trial left for may stay, and the one that works must.
    EXPECT_THAT(outcome.best, Contains(::testing::Pair("loader.workers", "2")));
    EXPECT_LE(outcome.changes.size(), 2u) << knobs::describe(outcome.best);
  }
}

TEST(Tuner, NoQueueDepthWithoutWorkers) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    return product(changes, {{"loader.prefetch_factor", {{"4", 1.2}}},  // a lucky trial
                             {"layout.channels_last", {{"true", 2.0}}},
                             {"loader.workers", {{"1", 0.8}, {"2", 0.8}, {"4", 0.8}}}});
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_EQ(outcome.best.count("loader.workers"), 0u);
  EXPECT_EQ(outcome.best.count("loader.prefetch_factor"), 0u);
  EXPECT_EQ(outcome.best.at("layout.channels_last"), "true");
}

TEST(Tuner, NothingToGainLeavesTheConfigurationAlone) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings&) { return at_rate(100); }, 0.01);
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_TRUE(outcome.changes.empty());
  EXPECT_THAT(outcome.conclusion, HasSubstr("nothing to gain"));
}

TEST(Tuner, RejectsAChangeThatBreaksTheLoss) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"cache.features", {{"memory", 3.0}}}, {"loader.workers", {{"2", 1.5}}}});
    result.loss = changes.contains("cache.features") ? 1.2 : 1.0;
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_FALSE(outcome.best.contains("cache.features"));
  EXPECT_EQ(outcome.best.at("loader.workers"), "2");
  ASSERT_TRUE(outcome.verification);
  EXPECT_TRUE(outcome.verification->shown);
  EXPECT_THAT(outcome.trials, Contains(::testing::Field(&LoggedTrial::verdict, "parity broken")));
}

/// Trials whose loss lies where `loss_of` says, given the changes and how many trials there were.
TunerOutcome tuned_with_losses(const std::function<double(const knobs::Settings&, int)>& loss_of) {
  Fixture fixture;
  int trials = 0;
  FakeRunner runner(fixture.clock, [&](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    result.loss = loss_of(changes, trials++);
    return result;
  });
  return fixture.tune(runner);
}

long repeats_in(const TunerOutcome& outcome) {
  return std::count_if(outcome.trials.begin(), outcome.trials.end(), [](const LoggedTrial& trial) {
    return trial.stage == "reference" && trial.verdict == "baseline";
  });
}

/// What an unseeded program comes to: its losses lie up to 8 % from each other, whatever is changed.
double unseeded(const knobs::Settings&, int trial) {
  static constexpr std::array kDraws = {1.0, 1.07, 0.96, 1.03, 0.98, 1.05, 0.97, 1.02, 1.04, 0.99};
  return kDraws[static_cast<std::size_t>(trial) % kDraws.size()];
}

TEST(Tuner, AnExactChangeMayDifferAsTheProgramDiffersFromItself) {
  const TunerOutcome outcome = tuned_with_losses(unseeded);
  EXPECT_EQ(outcome.best.count("loader.workers"), 1u);
  ASSERT_TRUE(outcome.verification);
  EXPECT_TRUE(outcome.verification->parity.held) << outcome.verification->parity.why;
  EXPECT_TRUE(outcome.verification->shown);
  EXPECT_GE(repeats_in(outcome), 1);
}

TEST(Tuner, AWorseLossBeyondTheProgramsOwnSpreadIsRejected) {
  const TunerOutcome outcome = tuned_with_losses([](const knobs::Settings& changes, int trial) {
    return unseeded(changes, trial) + (changes.contains("loader.workers") ? 0.8 : 0);
  });
  EXPECT_FALSE(outcome.best.contains("loader.workers"));
  EXPECT_THAT(outcome.trials, Contains(::testing::Field(&LoggedTrial::verdict, "parity broken")));
}

TEST(Tuner, AProgramThatRepeatsItselfIsRunTwiceBeforeALossIsRejected) {
  const TunerOutcome outcome = tuned_with_losses(
      [](const knobs::Settings& changes, int) { return changes.contains("loader.workers") ? 1.05 : 1.0; });
  EXPECT_FALSE(outcome.best.contains("loader.workers"));
  EXPECT_EQ(repeats_in(outcome), 1);
  for (std::size_t i = 0; i < outcome.trials.size(); ++i) {
    EXPECT_EQ(outcome.trials[i].index, static_cast<int>(i) + 1);
  }
}

TEST(Tuner, ALossThatIsNoNumberNeedsNoRepeats) {
  const TunerOutcome outcome = tuned_with_losses(
      [](const knobs::Settings& changes, int) { return changes.contains("loader.workers") ? std::nan("") : 1.0; });
  EXPECT_FALSE(outcome.best.contains("loader.workers"));
  EXPECT_EQ(repeats_in(outcome), 0);
}

TEST(Tuner, RejectsAChangeThatBreaksTheMetric) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"precision.amp", {{"bf16", 3.0}}}, {"loader.workers", {{"2", 1.5}}}});
    result.metrics["psnr"] = changes.contains("precision.amp") ? 24.8 : 25.0;
    return result;
  });
  EXPECT_EQ(fixture.tune(runner).best.count("precision.amp"), 0u);
}

TEST(Tuner, DropsAKnobThatDidNotTake) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    result.effective = changes;
    if (changes.contains("layout.channels_last")) {
      result.effective["layout.channels_last"] = "false";
    }
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_FALSE(outcome.best.contains("layout.channels_last"));
  ASSERT_EQ(outcome.not_taken.size(), 1u);
  EXPECT_THAT(outcome.not_taken[0], AllOf(HasSubstr("layout.channels_last"), HasSubstr("false")));
}

TEST(Tuner, TriesWhatTheDiagnosisProposesFirst) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"3", 2.0}}}});
    if (changes.empty()) {
      result.suggestions.push_back({{{"loader.workers", "3"}}, "loader-no-workers", "start three workers", 0.5});
    }
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_EQ(runner.asked.at(1).at("loader.workers"), "3");
  EXPECT_EQ(outcome.best.at("loader.workers"), "3");
}

TEST(Tuner, AFailedTrialIsNotTheEnd) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    if (changes.contains("cache.features")) {
      result.ok = false;
      result.problem = "out of memory";
    }
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_EQ(outcome.best.at("loader.workers"), "2");
  EXPECT_FALSE(outcome.best.contains("cache.features"));
}

TEST(Tuner, SaysWhenThereWasNoLossToCompare) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    result.loss.reset();
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_FALSE(outcome.verification->compared);
  EXPECT_THAT(outcome.conclusion, HasSubstr("neither loss nor metric"));
}

TEST(Tuner, AFailedBaselineIsAnError) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings&) {
    TrialResult result;
    result.problem = "no data";
    return result;
  });
  try {
    fixture.tune(runner);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kChild);
  }
}

TEST(Tuner, KeepsToItsBudgets) {
  const Factors factors = {{"loader.workers", {{"2", 1.5}}}, {"optimizer.fused", {{"true", 1.1}}}};
  Fixture few;
  few.options.trials = 3;
  FakeRunner first(few.clock, [&](const knobs::Settings& changes) { return product(changes, factors); });
  EXPECT_EQ(search_trials(few.tune(first)), 3);

  Fixture brief;
  brief.options.budget_s = 60;
  FakeRunner second(brief.clock, [&](const knobs::Settings& changes) { return product(changes, factors); });
  const std::int64_t start = brief.clock.now_ns();
  const TunerOutcome outcome = brief.tune(second);
  EXPECT_LT(seconds(brief.clock.now_ns() - start), 60.001);
  ASSERT_TRUE(outcome.verification);
  EXPECT_TRUE(outcome.verification->shown);
}

TEST(Tuner, SaysWhenTheBudgetWasTooSmallForAnything) {
  Fixture fixture;
  fixture.options.budget_s = 20;
  FakeRunner runner(fixture.clock, [](const knobs::Settings&) { return at_rate(100); });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_TRUE(outcome.changes.empty());
  EXPECT_THAT(outcome.conclusion, HasSubstr("budget"));
}

TEST(Tuner, AStopEndsItAndWritesNothing) {
  for (const int at : {1, 2, 4, 14}) {
    Fixture fixture;
    FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
      return product(changes, {{"loader.workers", {{"2", 1.5}}}});
    });
    runner.before = [&](int number) {
      if (number == at) {
        fixture.stop.request_stop();
      }
    };
    const TunerOutcome outcome = fixture.tune(runner);
    EXPECT_TRUE(outcome.interrupted);
    EXPECT_TRUE(outcome.changes.empty());
    EXPECT_EQ(static_cast<int>(runner.asked.size()), at);
    EXPECT_THAT(outcome.conclusion, HasSubstr("stopped"));
  }
}

TEST(Tuner, VerifiesInTurns) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    return product(changes, {{"loader.workers", {{"2", 1.5}}}});
  });
  const TunerOutcome outcome = fixture.tune(runner);
  std::vector<std::string> order;
  for (const LoggedTrial& trial : outcome.trials) {
    if (trial.stage.starts_with("verify")) {
      order.push_back(trial.stage);
    }
  }
  const std::vector<std::string> expected = {"verify-baseline", "verify-winner",   "verify-winner",
                                             "verify-baseline", "verify-baseline", "verify-winner"};
  EXPECT_EQ(order, expected);
  EXPECT_NEAR(outcome.verification->ratio, 1.5, 1e-9);
}

TEST(Tuner, ASlowMachineIsNotMistakenForASlowKnob) {
  Fixture fixture;
  int number = 0;
  FakeRunner runner(fixture.clock, [&](const knobs::Settings& changes) {
    TrialResult result =
        product(changes, {{"loader.workers", {{"2", 1.5}}}, {"layout.channels_last", {{"true", 1.4}}}});
    result.rate *= ++number >= 2 && number <= 7 ? 0.4 : 1;  // somebody else computes for a while
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_EQ(outcome.best.at("loader.workers"), "2");
  EXPECT_EQ(outcome.best.at("layout.channels_last"), "true");
  EXPECT_THAT(outcome.trials, Contains(::testing::Field(&LoggedTrial::stage, "reference")));
}

TEST(Tuner, AMachineThatGetsSlowerAllTheTimeChangesNothing) {
  const Factors factors = {{"loader.workers", {{"2", 1.5}}}, {"optimizer.fused", {{"true", 1.12}}}};
  int right = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Fixture fixture;
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

TEST(Tuner, AWorseLossThatChanceHidesInOneTrialShowsInAll) {
  const auto tune_with = [](double worse, bool seeded) {
    Fixture fixture;
    int draw = 0;
    FakeRunner runner(fixture.clock, [&](const knobs::Settings& changes) {
      // A gain that takes six pairs; the loss is uncertain by 2 %, so that 8 % pass for chance in a single trial.
      TrialResult result = product(changes, {{"loader.workers", {{"2", 1.07}}}});
      if (changes.contains("loader.workers")) {
        result.loss = 1 + worse + (seeded ? 0 : 0.001 * (++draw % 7));
        result.loss_error = 0.02;
      }
      return result;
    });
    return fixture.tune(runner);
  };
  EXPECT_FALSE(tune_with(0.01, false).changes.empty());
  const TunerOutcome worse = tune_with(0.06, false);
  EXPECT_TRUE(worse.changes.empty());
  ASSERT_TRUE(worse.verification);
  EXPECT_FALSE(worse.verification->parity.held);
  EXPECT_FALSE(tune_with(0.06, true).changes.empty()) << "the same draw six times says no more than once";
}

TEST(Tuner, OnePairThatFailsIsNotTheEnd) {
  Fixture fixture;
  int verifying = 0;
  FakeRunner runner(fixture.clock, [&](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    if (changes.empty() && ++verifying == 2) {
      result.ok = false;
      result.problem = "took too long";
    }
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  ASSERT_TRUE(outcome.verification);
  EXPECT_TRUE(outcome.verification->shown);
  EXPECT_EQ(outcome.verification->failures, 1);
}

TEST(Tuner, AGainThatIsSmallTakesMorePairs) {
  const auto pairs_at = [](double factor, double noise) {
    Fixture fixture;
    FakeRunner runner(
        fixture.clock,
        [&](const knobs::Settings& changes) { return product(changes, {{"loader.workers", {{"2", factor}}}}); }, noise);
    const TunerOutcome outcome = fixture.tune(runner);
    return outcome.verification ? outcome.verification->winner.size() : 0;
  };
  EXPECT_EQ(pairs_at(1.5, 0.005), 3u);
  EXPECT_GE(pairs_at(1.06, 0.005), 6u);
}

TEST(Tuner, SaysWhenTheMachineWasNotQuiet) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    result.others_cpus = 1.2;
    return result;
  });
  EXPECT_THAT(fixture.tune(runner).conclusion, HasSubstr("other processes"));
}

TEST(Tuner, KeepsTheEffectiveBatch) {
  Fixture fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    return product(changes, {{"batch.size", {{"16", 2.0}, {"4", 1.4}, {"8", 1.6}}}});
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_EQ(outcome.best.at("batch.size"), "16");
  EXPECT_EQ(outcome.best.at("batch.accumulation"), "1");
  for (const knobs::Settings& asked : runner.asked) {
    const knobs::Settings all = knobs::overlaid(kConfig, asked);
    EXPECT_EQ(*knobs::integer_of(all, "batch.size") * *knobs::integer_of(all, "batch.accumulation"), 16);
  }
}

}  // namespace
}  // namespace unidle::tune
