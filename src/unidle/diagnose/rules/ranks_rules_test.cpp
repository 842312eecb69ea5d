// Rules about several ranks: their exchange, and batches of unequal work.
#include <gmock/gmock.h>

#include <utility>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two ranks whose exchange takes 40 ms of each step of 100 ms, of which they wait for `wait_s`.
Signals exchanging(Signals signals, double wait_s) {
  signals.ranks.clear();
  for (const int rank : {0, 1}) {
    signals.ranks.push_back({.rank = rank, .step_s = 0.1, .wait_s = wait_s, .exchange_s = 0.04});
  }
  signals.exchange = ExchangeFacts{"nccl", true, false, "", 1e8};
  return signals;
}

TEST(RanksRules, AnExchangeThatOverlapsCostsAGpuNothing) {
  EXPECT_TRUE(silent("communication-bound", exchanging(healthy_gpu(), 0.001)));
  const Finding finding = fired("communication-bound", exchanging(healthy_gpu(), 0.02));
  EXPECT_NEAR(*finding.share, 0.2 * *make_context(healthy_gpu(), {}).train, 1e-9);
  EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("same CPUs"))));
  EXPECT_THAT(fired("communication-bound", exchanging(healthy_cpu(), 0.001)).evidence,
              Contains(HasSubstr("same CPUs")));
}

/// Two ranks that exchange by hand for so long in each step of 100 ms, as stack samples say.
Signals by_hand(double first_s, double second_s) {
  Signals signals = healthy_cpu();
  signals.ranks.clear();
  for (const auto& [rank, own_s] : {std::pair(0, first_s), std::pair(1, second_s)}) {
    RankTime time{.rank = rank, .step_s = 0.1, .process = rank + 1};
    time.parts.emplace()[account::kOther] = own_s;
    time.by_hand_s = own_s;
    time.error_s = 0.004;
    signals.ranks.push_back(time);
  }
  signals.hot = {{"train", "exchange", "train.py:9", "average", 50, 50}, {"train", "train", "train.py:5", "f", 50, 50}};
  return signals;
}

TEST(RanksRules, AnExchangeByHandNamesItsLine) {
  const Finding finding = fired("communication-bound", by_hand(0.04, 0.045));
  EXPECT_NEAR(*finding.share, 0.4 * *make_context(healthy_cpu(), {}).train, 1e-9);
  EXPECT_EQ(finding.where, "train.py:9");
  EXPECT_TRUE(silent("communication-bound", by_hand(0.04, 0.002)));
}

TEST(RanksRules, ARankThatOthersWaitForByHandIsLateByMoreThanTheErrorOfTheSamples) {
  EXPECT_TRUE(silent("straggler-rank", by_hand(0.06, 0.042)));
  EXPECT_THAT(fired("straggler-rank", by_hand(0.06, 0.005)).evidence, Contains(HasSubstr("rank 1")));
}

TEST(RanksRules, CodeBetweenTheStepsIsNotTheirExchangeByHand) {
  Signals signals = by_hand(0.04, 0.045);
  signals.training_process = signals.ranks[0].process;
  signals.step->other = 0.4;
  EXPECT_TRUE(silent("python-between-steps", signals));
  signals.ranks[0].by_hand_s.reset();  // DistributedDataParallel measures the exchange of gradients, and not this one
  fired("python-between-steps", signals);
}

TEST(RanksRules, AdviceOnUnusedParametersNamesWhenItIsRight) {
  const auto fixes = fired("communication-bound", exchanging(healthy_gpu(), 0.03)).fixes;
  EXPECT_THAT(fixes, Contains(Field(&knobs::Change::reason, HasSubstr("if every parameter gets a gradient"))));
  EXPECT_THAT(fixes, Contains(Field(&knobs::Change::reason, HasSubstr("import default_hooks"))));
}

TEST(RanksRules, OddNumbersOfBytesAreWithinRange) {
  for (const auto& [bytes, said] : {std::pair(-5.0, "sends 0 B"), std::pair(1e300, "sends 4194304.0 TiB")}) {
    Signals signals = exchanging(healthy_gpu(), 0.03);
    signals.exchange->gradient_bytes = bytes;
    EXPECT_THAT(fired("communication-bound", signals).evidence, Contains(HasSubstr(said)));
  }
}

/// Four ranks that come last in turn, for which the others wait `wait_s` of a step of 100 ms.
Signals uneven(Signals signals, double wait_s) {
  signals.ranks.clear();
  for (const int rank : {0, 1, 2, 3}) {
    signals.ranks.push_back({.rank = rank, .step_s = 0.1, .wait_s = wait_s});
    for (int exchange = 0; exchange < 12; ++exchange) {
      signals.ranks.back().waits[exchange] = exchange % 4 == rank ? 0 : wait_s;
    }
  }
  signals.batch_shapes = 60;
  signals.cpus_used = 2;
  return signals;
}

/// Ranks that take part in 16 exchanges, to so many of which the first comes last, and the others in turn to the rest.
Signals late(int ranks, int times) {
  Signals signals = healthy_cpu();
  signals.ranks.clear();
  for (int rank = 0; rank < ranks; ++rank) {
    signals.ranks.push_back({.rank = rank, .step_s = 0.1, .wait_s = 0.03});
    for (int exchange = 0; exchange < 16; ++exchange) {
      const int last = exchange < times ? 0 : 1 + exchange % (ranks - 1);
      signals.ranks.back().waits[exchange] = rank == last ? 0.001 : 0.04;
    }
  }
  return signals;
}

TEST(RanksRules, OneOfManyRanksIsLateWhereItComesLastFarMoreOftenThanTheOthers) {
  EXPECT_TRUE(silent("straggler-rank", late(2, 11)));
  fired("straggler-rank", late(2, 12));
  EXPECT_TRUE(silent("straggler-rank", late(4, 9)));
  fired("straggler-rank", late(4, 10));
}

TEST(RanksRules, OthersOnTheCpusMakeRanksLateInTurn) {
  Signals signals = uneven(healthy_cpu(), 0.04);
  signals.others_cpus_used = 0;
  fired("ranks-uneven", signals);
  signals.others_cpus_used = 3;
  EXPECT_TRUE(silent("ranks-uneven", signals));
  signals = uneven(healthy_cpu(), 0.07);
  signals.others_cpus_used = 3;
  fired("ranks-uneven", signals);
  signals = uneven(healthy_gpu(), 0.04);
  signals.others_cpus_used = 3;
  fired("ranks-uneven", signals);
}

}  // namespace
}  // namespace unidle::diagnose::testing
