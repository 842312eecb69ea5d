#include "unidle/tune/trials/memory_margin.h"

#include <gmock/gmock.h>

namespace unidle::tune {
namespace {

using ::testing::HasSubstr;

diagnose::Diagnosis full_memory() {
  diagnose::Finding finding;
  finding.id = "memory-nearly-full";
  finding.evidence = {"95 % of 8 GiB"};
  diagnose::Diagnosis diagnosis;
  diagnosis.findings = {finding};
  return diagnosis;
}

TEST(MemoryMargin, AnotherBatchThatLeavesNoneFailed) {
  TrialResult result;
  result.ok = true;
  refuse_full_memory(full_memory(), {{"batch.size", 64}}, result);
  EXPECT_FALSE(result.ok);
  EXPECT_THAT(result.problem, HasSubstr("95 % of 8 GiB"));
}

TEST(MemoryMargin, WhatTheProgramTakesByItselfIsItsOwnBusiness) {
  TrialResult result;
  result.ok = true;
  refuse_full_memory(full_memory(), {{"loader.workers", 2}}, result);
  EXPECT_TRUE(result.ok);
  refuse_full_memory({}, {{"batch.size", 64}}, result);
  EXPECT_TRUE(result.ok);
}

}  // namespace
}  // namespace unidle::tune
