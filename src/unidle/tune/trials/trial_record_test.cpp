#include "unidle/tune/trials/trial_record.h"

#include <gtest/gtest.h>

namespace unidle::tune {
namespace {

record::Step step(std::int64_t process, double begin_s, double seconds, std::int64_t samples) {
  record::Step made;
  made.process = process;
  made.t_ns = static_cast<std::int64_t>(begin_s * 1e9);
  made.duration_ns = static_cast<std::int64_t>(seconds * 1e9);
  made.samples = samples;
  return made;
}

TEST(TrialRecord, RateLeavesOutWarmUpAndCountsGaps) {
  std::vector<record::Step> steps;
  for (int i = 0; i < 4; ++i) {
    steps.push_back(step(1, 100 + 10 * i, 10, 4));  // warm-up, slow
  }
  for (int i = 0; i < 12; ++i) {
    steps.push_back(step(1, 200 + 2 * i, 1, 4));  // a second of validation after each
  }
  EXPECT_DOUBLE_EQ(rate_after_warmup(steps), 12 * 4 / 23.0);
  const std::vector<record::Step> one = steps;
  for (record::Step other : one) {
    other.process = 2;
    steps.push_back(other);
  }
  EXPECT_DOUBLE_EQ(rate_after_warmup(steps), 2 * 12 * 4 / 23.0);
  EXPECT_EQ(rate_after_warmup({}), 0);
}

}  // namespace
}  // namespace unidle::tune
