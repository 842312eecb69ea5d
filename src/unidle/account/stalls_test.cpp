#include "unidle/account/stalls.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <utility>

#include "unidle/account/account.h"

namespace unidle::account {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

record::Step step_of(std::int64_t t_ns, std::int64_t duration_ns) {
  record::Step step;
  step.process = 1;
  step.t_ns = t_ns;
  step.duration_ns = duration_ns;
  step.samples = 4;
  return step;
}

std::optional<Stalls> stalls_in(RunData run) {
  tidy(run);
  const Account account = account_of(run);
  return stalls(account.timeline, account.periods);
}

/// Steps of 20 ms, longer where `is_slow`.
std::optional<Stalls> stalls_of(int count, const std::function<bool(int step)>& is_slow,
                                std::int64_t slow_ns = 600 * kMillisecond) {
  RunData run;
  std::int64_t t_ns = 0;
  for (int i = 0; i < count; ++i) {
    run.steps.push_back(step_of(t_ns, 20 * kMillisecond + (is_slow(i) ? slow_ns : 0)));
    t_ns += run.steps.back().duration_ns;
  }
  return stalls_in(std::move(run));
}

TEST(Stalls, AtRegularDistancesAreFoundThoughOneIsMissing) {
  for (const int every : {2, 3, 5, 10, 40, 100}) {
    const auto found = stalls_of(every * 12, [&](int i) { return i % every == 1 && i / every != 6; });
    ASSERT_TRUE(found) << every;
    EXPECT_DOUBLE_EQ(found->every_steps.value_or(0), every);
    EXPECT_NEAR(found->each_s, 0.6, 1e-9);
  }
}

TEST(Stalls, OfAClockAreRegularInSeconds) {
  // In every other four seconds steps take twice as long, so that equal seconds are different numbers of steps.
  std::int64_t next_ns = 2000 * kMillisecond;
  RunData run;
  for (std::int64_t t_ns = 0; t_ns < 60'000 * kMillisecond;) {
    record::Step step = step_of(t_ns, (t_ns / (4000 * kMillisecond) % 2 == 0 ? 20 : 45) * kMillisecond);
    if (t_ns >= next_ns) {
      step.duration_ns += 600 * kMillisecond;
      next_ns += 4000 * kMillisecond;
    }
    t_ns += step.duration_ns;
    run.steps.push_back(step);
  }
  const auto found = stalls_in(std::move(run));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->every_steps);
  EXPECT_NEAR(found->every_s.value_or(0), 4, 0.1);
}

TEST(Stalls, OfABurstDoNotComeBack) {
  EXPECT_FALSE(stalls_of(400, [](int i) { return i >= 100 && i < 112; }));
  EXPECT_FALSE(stalls_of(400, [](int i) { return i >= 100 && i < 140 && i % 5 == 0; })) << "a tenth of the run";
}

TEST(Stalls, AtRandomDistancesAreNotRegular) {
  std::mt19937 random(1);
  constexpr int kRuns = 200;
  for (const double share : {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45}) {
    for (const std::int64_t slow_ms : {100, 600, 3000}) {
      std::bernoulli_distribution slow(share);
      int found = 0;
      for (int run = 0; run < kRuns; ++run) {
        found += stalls_of(300, [&](int) { return slow(random); }, slow_ms * kMillisecond) ? 1 : 0;
      }
      EXPECT_LE(found, kRuns / 50) << share << ", " << slow_ms << " ms";
    }
  }
}

}  // namespace
}  // namespace unidle::account
