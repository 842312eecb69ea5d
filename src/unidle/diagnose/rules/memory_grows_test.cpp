#include <gmock/gmock.h>

#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(MemoryGrows, OddNotesOfWhatGrowsAreSafe) {
  Signals signals = healthy_cpu();
  signals.development.emplace();
  signals.development->memory_bytes = {1e9, 2e9, 3e9, 4e9, 5e9};
  signals.development->memory_per_step = 4e6;
  signals.growing = {{.name = "losses", .where = "", .per_step = 1, .bytes_per_step = 1e300}};
  const Finding finding = fired("memory-grows", signals);
  EXPECT_FALSE(finding.where) << "the note has no place";
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("takes 4194304.0 TiB")));
}

}  // namespace
}  // namespace unidle::diagnose::testing
