#include "unidle/account/account.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace unidle::account {
namespace {

constexpr std::int64_t kMs = 1'000'000;

record::Step step_at(std::int64_t t_ms, std::int64_t duration_ms, std::int64_t process = 1) {
  record::Step step;
  step.process = process;
  step.t_ns = t_ms * kMs;
  step.duration_ns = duration_ms * kMs;
  step.samples = 4;
  return step;
}

RunData run_of(std::vector<record::Step> steps, std::vector<record::Span> spans = {}) {
  RunData run;
  run.steps = std::move(steps);
  run.spans = std::move(spans);
  tidy(run);
  return run;
}

double sum(const Parts& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }

TEST(Periods, CountTheGapAfterAStepButNotTheValidationInIt) {
  const Account account =
      account_of(run_of({step_at(0, 100), step_at(400, 100)}, {{"validate", 1, 150 * kMs, 200 * kMs, 0}}));
  ASSERT_EQ(account.periods.size(), 2U);
  EXPECT_NEAR(account.periods[0].wall_s, 0.2, 1e-12);
  EXPECT_NEAR(account.periods[0].step_s, 0.1, 1e-12) << "nobody knows what the gap was for";
  EXPECT_NEAR(account.periods[1].wall_s, 0.1, 1e-12);
}

TEST(Periods, OverlappingSpansAreTakenOffOnce) {
  const Account account =
      account_of(run_of({step_at(0, 100), step_at(1000, 100)},
                        {{"validate", 1, 200 * kMs, 400 * kMs, 0}, {"checkpoint", 1, 300 * kMs, 100 * kMs, 0}}));
  EXPECT_NEAR(account.periods[0].wall_s, 0.6, 1e-12);
  EXPECT_NEAR(account.phases.validate, 0.3, 1e-12);
  EXPECT_NEAR(account.phases.checkpoint, 0.1, 1e-12);
}

TEST(Phases, ATestOfTheTrainedModelIsMoreThanTheUsualValidation) {
  const auto validated = [](std::int64_t begin, std::int64_t length) {
    return record::Span{"validate", 1, begin * kMs, length * kMs, 0};
  };
  const auto tests = [](std::vector<record::Span> spans) {
    RunData run = run_of({step_at(0, 100), step_at(300, 100), step_at(600, 100)}, std::move(spans));
    return tests_after_training(account_of(run).timeline);
  };
  const auto found = tests({validated(110, 100), validated(410, 100), validated(710, 100), validated(820, 250)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->count, 1);
  EXPECT_NEAR(found->seconds, 0.25, 1e-9);
  EXPECT_FALSE(tests({validated(110, 100), validated(410, 100), validated(710, 100)}));
  EXPECT_EQ(tests({validated(710, 100), validated(820, 250)})->count, 2);
  EXPECT_FALSE(tests({validated(50, 5), validated(710, 400)})->beside_validations) << "a dry run is no validation";
  EXPECT_TRUE(tests({validated(110, 100), validated(710, 400)})->beside_validations);
  EXPECT_EQ(tests({validated(110, 100), validated(710, 400)})->count, 1) << "several without a gap count as one";
  EXPECT_FALSE(tests({validated(110, 100), validated(410, 100)}));
}

TEST(Periods, FilesSavedOneAfterTheOtherAreOneCheckpoint) {
  const auto saved = [](std::int64_t begin, std::int64_t length) {
    return record::Span{"checkpoint", 1, begin * kMs, length * kMs, 0};
  };
  const Account account =
      account_of(run_of({step_at(0, 100), step_at(1000, 100)}, {saved(200, 100), saved(300, 50), saved(600, 100)}));
  EXPECT_EQ(account.timeline.checkpoints, 2);
  EXPECT_NEAR(account.phases.checkpoint, 0.25, 1e-12);
}

TEST(Periods, CheckpointsAfterAsManyStepsAreRegular) {
  const auto every = [](const std::vector<std::int64_t>& saved_after) {
    std::vector<record::Step> steps;
    std::vector<record::Span> spans;
    for (std::int64_t number = 0; number < 40; ++number) {
      steps.push_back(step_at(number * 100, 110));  // over only when the next one begins
    }
    for (const std::int64_t number : saved_after) {
      spans.push_back({"checkpoint", 1, (number * 100 - 10) * kMs, 5 * kMs, 0});
    }
    return account_of(run_of(std::move(steps), std::move(spans))).timeline.checkpoint_every;
  };
  EXPECT_EQ(every({10, 20, 30, 40}), 10);
  EXPECT_EQ(every({10, 20, 30, 33}), 10) << "the last one at the end";
  EXPECT_EQ(every({1, 2, 3, 4, 5}), 1);
  EXPECT_EQ(every({3, 11, 14, 30}), std::nullopt);
  EXPECT_EQ(every({10}), std::nullopt);
  EXPECT_EQ(every({}), std::nullopt);
}

TEST(Periods, PartsAlwaysSumToTheStep) {
  record::Step over = step_at(100, 100);
  over.input_ns = 60 * kMs;  // before the step began
  over.forward_ns = 90 * kMs;
  const Account account = account_of(run_of({step_at(0, 30), over, step_at(200, 50)}));
  for (const Period& period : account.periods) {
    EXPECT_NEAR(sum(period.parts), period.step_s, 1e-12);
  }
  EXPECT_EQ(account.periods[1].begin_ns, 50 * kMs);
  EXPECT_NEAR(account.periods[1].step_s, 0.15, 1e-12);
  EXPECT_EQ(account.periods[1].parts[kOther], 0);
}

TEST(Periods, WhatWasNotSeenInFullIsDividedAsInTheStepsThatWere) {
  record::Step full = step_at(0, 100);
  full.input_ns = 20 * kMs;
  full.forward_ns = full.backward_ns = 30 * kMs;
  full.optimizer_ns = 20 * kMs;
  record::Step other = step_at(100, 100);
  other.sync_ns = 50 * kMs;
  for (const bool input_known : {true, false}) {
    if (input_known) {
      other.input_ns = 10 * kMs;
    }
    const std::vector<Period> periods = account_of(run_of({full, other})).periods;
    EXPECT_NEAR(periods[1].parts[kSync], 0.05, 1e-12);
    EXPECT_NEAR(periods[1].parts[kInput], 0.01, 1e-12);
    EXPECT_NEAR(periods[1].parts[kCompute], 0.03, 1e-12);
    EXPECT_NEAR(periods[1].parts[kOptimizer], 0.01, 1e-12);
    EXPECT_NEAR(periods[1].parts[kOther], 0, 1e-12);
    EXPECT_NEAR(periods[0].parts[kCompute], 0.06, 1e-12);
    other.input_ns.reset();
  }
}

TEST(Phases, SumToTheWallTimeAndStartUpIsWhatPrecedesTheFirstStep) {
  RunData run;
  run.meta["start_ns"] = 0;
  run.meta["end_ns"] = 2000 * kMs;
  run.steps = {step_at(500, 100), step_at(600, 100)};
  run.spans = {{"validate", 1, 700 * kMs, 300 * kMs, 0}};
  tidy(run);
  const PhaseTimes p = account_of(run).phases;
  EXPECT_NEAR(p.startup, 0.5, 1e-9);
  EXPECT_NEAR(p.train, 0.2, 1e-9);
  EXPECT_NEAR(p.validate, 0.3, 1e-9);
  EXPECT_NEAR(p.other, 1.0, 1e-9);
}

TEST(Phases, ARunThatMadeAnOptimiserAndFinishedNoStepIsStartUp) {
  RunData run;
  run.meta["start_ns"] = 0;
  run.meta["end_ns"] = 2000 * kMs;
  EXPECT_NEAR(account_of(run).phases.other, 2.0, 1e-9) << "nobody knows what it was for";
  run.notes = {{0, 1, {{"type", "optimizer"}, {"class", "Adam"}}}};
  EXPECT_NEAR(account_of(run).phases.startup, 2.0, 1e-9);
}

TEST(Phases, AFirstStepThatIsAHundredOthersIsStartUp) {
  for (const std::int64_t first_ms : {9'900, 10'000}) {
    std::vector<record::Step> steps = {step_at(0, first_ms)};
    for (int i = 0; i < 20; ++i) {
      steps.push_back(step_at(first_ms + 100 * i, 100));
    }
    const Account account = account_of(run_of(steps));
    const bool start_up = first_ms == 10'000;
    EXPECT_NEAR(account.phases.startup, start_up ? 10 : 0, 1e-9);
    EXPECT_NEAR(account.phases.train, start_up ? 2 : 11.9, 1e-9);
  }
}

TEST(Processes, RanksSideBySideGiveTheirSamplesAndOneOfThemTheTime) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 10; ++i) {
    steps.push_back(step_at(100 * i, 100, 1));
    steps.push_back(step_at(100 * i + 2, 100, 2));
    steps.push_back(step_at(100 * i - 2 + 4, 100, 3));
  }
  const Account account = account_of(run_of(steps));
  EXPECT_EQ(account.timeline.process, 1);
  EXPECT_EQ(account.timeline.steps.size(), 10U);
  EXPECT_EQ(account.timeline.rank_factor, 3);
  EXPECT_NEAR(account.rates.training.value(), 120, 1e-9);
}

TEST(Ranks, WaitAtMostTheirWholeStep) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 10; ++i) {
    steps.push_back(step_at(100 * i, 100, 1));
    steps.push_back(step_at(100 * i + 2, 100, 2));
  }
  RunData run = run_of(steps);
  run.notes = {{0, 1, {{"type", "rank"}, {"rank", 0}, {"wait_seconds", 0.01}}},
               {0, 2, {{"type", "rank"}, {"rank", 1}, {"wait_seconds", 0.1076}}}};
  const Account account = account_of(run);
  ASSERT_EQ(account.ranks.size(), 2U);
  EXPECT_NEAR(account.ranks[0].work_s(), 0.09, 1e-9);
  EXPECT_EQ(account.ranks[1].work_s(), 0) << "it is the median of other steps";
}

/// Two ranks whose waits for each exchange, in ms, are given.
RunData two_ranks(const std::vector<int>& first, const std::vector<int>& second) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 40; ++i) {
    steps.push_back(step_at(100 * i, 100, 1));
    steps.push_back(step_at(100 * i + 2, 100, 2));
  }
  RunData run = run_of(steps);
  for (const auto& [rank, waits_ms] : {std::pair(0, first), std::pair(1, second)}) {
    nlohmann::json waits_us = nlohmann::json::array();
    for (std::size_t i = 0; i < waits_ms.size(); ++i) {
      waits_us.push_back({10 * (i + 1), 1000 * waits_ms[i]});
    }
    run.notes.push_back({0, rank + 1, {{"type", "parallel"}, {"kind", "ddp"}, {"rank", rank}, {"world_size", 2}}});
    run.notes.push_back(
        {0, rank + 1, {{"type", "rank"}, {"rank", rank}, {"wait_seconds", 0.02}, {"waits_us", waits_us}}});
  }
  return run;
}

TEST(Ranks, ThatExchangeByHandWaitAsStackSamplesSay) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 40; ++i) {
    steps.push_back(step_at(100 * i, 100, 1));
    steps.push_back(step_at(100 * i + 2, 100, 2));
  }
  RunData run = run_of(steps);
  const auto add = [&](int process, const char* phase, int total) {
    run.notes.push_back(
        {0, process, {{"type", "hot"}, {"role", "train"}, {"phase", phase}, {"hits", 3}, {"total", total}}});
  };
  for (const int rank : {0, 1}) {
    run.notes.push_back({0, rank + 1, {{"type", "parallel"}, {"kind", "none"}, {"rank", rank}, {"world_size", 2}}});
    add(rank + 1, "train", 30);
  }
  EXPECT_TRUE(ranks_that_wait(account_of(run).ranks).empty()) << "nobody exchanges by hand";
  add(1, "exchange", 20);
  add(2, "exchange", 10);
  const std::vector<RankTime> ranks = account_of(run).ranks;
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_FALSE(ranks[0].wait_s) << "nobody measured it";
  const std::vector<RankTime> waiting = ranks_that_wait(ranks);
  ASSERT_EQ(waiting.size(), 2U);
  const auto other_s = [&](std::size_t rank) { return (*ranks[rank].parts)[kOther]; };
  EXPECT_NEAR(*waiting[0].wait_s, std::min(0.04, other_s(0)), 1e-9);
  EXPECT_NEAR(*waiting[1].wait_s, std::min(0.025, other_s(1)), 1e-9);
  EXPECT_NEAR((*waiting[0].parts)[kOther], other_s(0) - *waiting[0].wait_s, 1e-9);
  EXPECT_GT(waiting[0].error_s, 0);
}

TEST(Ranks, ThatComeLastInTurnHaveNoneThatIsLate) {
  const auto found = arrivals(account_of(two_ranks({10, 30, 10, 50, 10, 30}, {30, 10, 30, 10, 50, 10})).ranks);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->compared, 6U);
  EXPECT_NEAR(found->exchange_s, 0.01, 1e-9);
  EXPECT_NEAR(found->last_share, 0.5, 1e-9);
  EXPECT_NEAR(found->others_wait_s, (4 * 0.01 + 2 * 0.02) / 6, 1e-9);
  EXPECT_LT(found->late_s, 0.025);
}

TEST(Ranks, TheOneThatWaitsLeastIsLateByWhatTheOthersWait) {
  const auto found = arrivals(account_of(two_ranks({40, 42, 41, 10, 43, 40}, {9, 11, 10, 20, 8, 9})).ranks);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->last, 1U);
  EXPECT_NEAR(found->last_share, 5.0 / 6, 1e-9);
  EXPECT_NEAR(found->late_s, 0.031, 1e-9);
  EXPECT_FALSE(arrivals(account_of(two_ranks({40, 42, 41, 10}, {9, 11, 10, 20})).ranks)) << "too few exchanges";
}

TEST(Ranks, ThatTimeNoWaitsAreKnownByTheirSteps) {
  RunData run = two_ranks({}, {});
  std::erase_if(run.notes, [](const record::Note& note) { return note.body.at("type") == "rank"; });
  const Account account = account_of(run);
  ASSERT_EQ(account.ranks.size(), 2U);
  EXPECT_NEAR(account.ranks[1].step_s, 0.1, 1e-9);
  EXPECT_TRUE(ranks_that_wait(account.ranks).empty());
}

TEST(Ranks, ThatExchangeInFewStepsWaitInFew) {
  RunData run = two_ranks({10, 10, 10, 10, 10}, {10, 10, 10, 10, 10});
  run.notes[1].body["exchanges_per_step"] = 0.25;
  const Account account = account_of(run);
  EXPECT_NEAR(*account.ranks[0].wait_s, 0.005, 1e-9);
  EXPECT_NEAR(account.ranks[0].waits.at(10), 0.0025, 1e-9);
}

TEST(Processes, OneAfterTheOtherIsNotSideBySide) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 10; ++i) {
    steps.push_back(step_at(100 * i, 100, 1));
    steps.push_back(step_at(5000 + 100 * i, 100, 2));
  }
  steps.push_back(step_at(6000, 100, 2));
  const Account account = account_of(run_of(steps));
  EXPECT_EQ(account.timeline.process, 2);
  EXPECT_EQ(account.timeline.rank_factor, 1);
  EXPECT_NEAR(account.rates.training.value(), 40, 1e-9);
}

TEST(Rates, CountGapsAndTheTotalCountsValidationToo) {
  std::vector<record::Step> steps;
  std::vector<record::Span> spans;
  for (int i = 0; i < 16; ++i) {
    steps.push_back(step_at(1000 * i, 500));  // then half a second of other work
    spans.push_back({"validate", 1, (1000 * i + 600) * kMs, 300 * kMs, 0});
  }
  const Account account = account_of(run_of(steps, spans));
  EXPECT_EQ(account.timeline.first_counted, 4U);
  const double trained_s = 11 * 0.7 + 0.5;
  EXPECT_NEAR(account.rates.training.value(), 48 / trained_s, 1e-9);
  EXPECT_NEAR(account.rates.steps_per_s.value(), 12 / trained_s, 1e-9);
  EXPECT_NEAR(account.rates.total.value(), 48 / (trained_s + 12 * 0.3), 1e-9);
  const Throughput with_interval = throughput(account);
  EXPECT_EQ(with_interval.training->value, account.rates.training);
  EXPECT_EQ(with_interval.total->value, account.rates.total);
  EXPECT_TRUE(with_interval.training->interval);
}

TEST(Steps, TheBatchIsThatOfStepsWithTheUsualMicroBatches) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 20; ++i) {
    steps.push_back(step_at(100 * i, 100));
    steps.back().samples = 16;
    steps.back().micro_batches = i == 12 ? 1 : 2;
  }
  EXPECT_EQ(account_of(run_of(steps)).step->batch_samples, 8);
}

TEST(Rates, OfNoStepsAreNone) {
  const Account account = account_of(run_of({}));
  EXPECT_FALSE(account.rates.training || account.step || account.timeline.process);
  EXPECT_FALSE(throughput(account).training);
}

TEST(RecentRates, CountTheLastSecondsAndAllRanks) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 100; ++i) {
    for (const std::int64_t process : {1, 2}) {
      record::Step step = step_at(i < 50 ? 1000 * i : 50'000 + 100 * (i - 50), i < 50 ? 1000 : 100, process);
      step.input_ns = (i < 50 ? 900 : process == 1 ? 25 : 50) * kMs;
      steps.push_back(step);
    }
  }
  const RecentRates recent = recent_rates(steps, 4.95);
  EXPECT_NEAR(recent.samples_per_s.value(), 80, 1e-9);
  EXPECT_NEAR(recent.steps_per_s.value(), 10, 1e-9);
  EXPECT_NEAR(recent.input_share.value(), 0.25, 1e-9);
  ASSERT_EQ(recent.processes.size(), 2U);
  EXPECT_EQ(recent.processes[1].process, 2);
  EXPECT_NEAR(recent.processes[1].input_share.value(), 0.5, 1e-9);
  EXPECT_FALSE(recent_rates({}, 10).samples_per_s);
  std::erase_if(steps, [](const record::Step& step) { return step.process == 2; });
  EXPECT_TRUE(recent_rates(steps, 10).processes.empty()) << "one process is no rank";
}

TEST(Losses, ThatAreReadBackLateBelongToTheSameCurve) {
  RunData run = run_of({step_at(0, 100), step_at(100, 100), step_at(200, 100)});
  run.steps[0].loss = 3;
  run.steps[0].samples_before = 0;
  run.steps[1].loss = std::numeric_limits<double>::quiet_NaN();
  run.steps[1].samples_before = 4;
  run.metrics["loss"] = {{"loss", 400 * kMs, 2, 8, 1}};
  const LossCurve losses = account_of(run).losses;
  ASSERT_EQ(losses.points.size(), 2U);
  EXPECT_EQ(losses.points[1].samples, 8);
  EXPECT_EQ(losses.points[1].value, 1);
  EXPECT_THAT(losses.not_finite, ::testing::ElementsAre(4));
}

TEST(Cpus, OfOthersAreThoseOfTheMachineWhileItTrains) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 20; ++i) {
    steps.push_back(step_at(10'000 + 100 * i, 100));
  }
  RunData run = run_of(steps);
  run.meta["start_ns"] = 0;
  run.meta["host"] = {{"cpus_allowed", 8}, {"cpu_quota", 4.5}};
  const auto affinity = [](std::int64_t process, const char* role, const char* cpus) {
    return record::Note{0, process, {{"type", "affinity"}, {"role", role}, {"cpus", cpus}}};
  };
  run.notes = {affinity(1, "train", "0-3"), affinity(1, "train", "0-2"), affinity(1, "worker", "0"),
               affinity(2, "train", "1")};
  std::vector<record::Point> own;
  std::vector<record::Point> machine;
  for (std::int64_t t = 0; t < 12'000; t += 100) {
    own.push_back({t * kMs, t < 10'000 ? 0.5 : 2});
    machine.push_back({t * kMs, t < 10'000 ? 8.0 : 3});
  }
  run.series = {{{"tree.cpu", "cores", ""}, own},
                {{"host.cpu", "cores", ""}, machine},
                {{"tree.run_delay", "cores", ""}, {{11'000 * kMs, 0.7}}}};
  const Account account = account_of(run);
  EXPECT_EQ(account.cpus.delay, 0.7);
  EXPECT_EQ(account.cpus.own, 2);
  EXPECT_EQ(account.cpus.others, 1);
  EXPECT_EQ(account.cpus_allowed.now, 3);
  EXPECT_EQ(account.cpus_allowed.at_start, 4.5);
  EXPECT_NEAR(account.cpu_utilisation.value_or(0), 2.0 / 3, 1e-12);
  EXPECT_NEAR(mean_over_run(run, "tree.cpu").value(), 0.75, 1e-9);
  EXPECT_EQ(max_over_run(run, "host.cpu"), 8);
  for (auto& [series, points] : run.series) {
    if (series.name == "host.cpu") {  // read at other moments, so it may be less
      std::for_each(points.begin(), points.end(), [](record::Point& point) { point.value = 1.9; });
    }
  }
  EXPECT_EQ(account_of(run).cpus.others, 0);
}

TEST(Cpus, AMaskOfTheLaunchCommandIsNoLimitOfTheJob) {
  RunData run = run_of({step_at(0, 100), step_at(100, 100)});
  run.meta["host"] = {{"cpus_allowed", 1}, {"cpus_before_mask", 8}, {"cpu_quota", nullptr}};
  EXPECT_EQ(account_of(run).cpus_allowed.now, 1);
  EXPECT_EQ(account_of(run).cpus_allowed.at_start, 8);
  run.meta["host"]["cpu_quota"] = 4;
  EXPECT_EQ(account_of(run).cpus_allowed.at_start, 4) << "the cgroup gives no more";
  run.meta["host"]["cpu_quota"] = 0.5;
  EXPECT_EQ(account_of(run).cpus_allowed.at_start, std::nullopt) << "the mask is not what limits it";
}

TEST(Cpus, TheFirstReadingReachesIntoTheWarmUp) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 20; ++i) {
    steps.push_back(step_at(100 * i, 100));
  }
  RunData run = run_of(steps);
  const auto own = [&](const std::vector<record::Point>& points) {
    run.series = {{{"tree.cpu", "cores", ""}, points}};
    return account_of(run).cpus.own;
  };
  EXPECT_EQ(own({{900 * kMs, 7}, {1200 * kMs, 2}, {1500 * kMs, 4}}), 3);
  EXPECT_EQ(own({{900 * kMs, 7}}), 7) << "better than none";
}

TEST(Tidy, ImpossibleTimesAreLeftOutAndCounted) {
  record::Step negative = step_at(0, 100);
  negative.duration_ns = -5;
  record::Step late = step_at(0, 100);
  late.t_ns = std::numeric_limits<std::int64_t>::max();
  const RunData run = run_of({step_at(0, 100), negative, late});
  EXPECT_EQ(run.steps.size(), 1U);
  EXPECT_THAT(run.missing, ::testing::Contains(::testing::HasSubstr("2 rows")));
}

TEST(Tidy, ARecordWithoutAnEndEndsWithTheLastThingSeen) {
  const RunData run = run_of({step_at(0, 100), step_at(100, 150)});
  EXPECT_EQ(account_of(run).timeline.end_ns, 250 * kMs);
  EXPECT_THAT(run.missing, ::testing::Contains(::testing::HasSubstr("cut off")));
}

TEST(WarmUp, IsAQuarterOfAShortRunAndTenStepsOfALongOne) {
  EXPECT_EQ(warm_up_steps(0), 0U);
  EXPECT_EQ(warm_up_steps(1), 0U);
  EXPECT_EQ(warm_up_steps(2), 1U);
  EXPECT_EQ(warm_up_steps(8), 2U);
  EXPECT_EQ(warm_up_steps(30), 7U);
  EXPECT_EQ(warm_up_steps(5000), 10U);
}

}  // namespace
}  // namespace unidle::account
