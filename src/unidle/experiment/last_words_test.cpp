#include "unidle/experiment/last_words.h"

#include <gtest/gtest.h>

namespace unidle::experiment {
namespace {

TEST(LastWords, ComeFromStandardErrorFirst) {
  EXPECT_EQ(last_words("a\nboom\n\n", "out\n"), "boom");
  EXPECT_EQ(last_words("\n", "out\r\n"), "out");
  EXPECT_FALSE(last_words("", "").empty());
}

}  // namespace
}  // namespace unidle::experiment
