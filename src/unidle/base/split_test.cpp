#include "unidle/base/split.h"

#include <gmock/gmock.h>

namespace unidle {
namespace {

using ::testing::ElementsAre;

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split("a,", ','), ElementsAre("a", ""));
  EXPECT_THAT(split(",", ','), ElementsAre("", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
}

TEST(Split, AtZero) { EXPECT_THAT(split(std::string_view("a\0b", 3), '\0'), ElementsAre("a", "b")); }

}  // namespace
}  // namespace unidle
