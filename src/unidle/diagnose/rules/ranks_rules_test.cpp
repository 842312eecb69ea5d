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
