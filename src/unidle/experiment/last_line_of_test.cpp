#include "unidle/experiment/last_line_of.h"

#include <gtest/gtest.h>

namespace unidle::experiment {
namespace {

TEST(LastWords, ComeFromStandardErrorFirst) {
  EXPECT_EQ(last_line_of("a\nboom\n\n", "out\n"), "boom");
  EXPECT_EQ(last_line_of("\n", "out\r\n"), "out");
  EXPECT_FALSE(last_line_of("", "").empty());
}

}  // namespace
}  // namespace unidle::experiment
