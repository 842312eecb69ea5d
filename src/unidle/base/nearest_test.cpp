#include "unidle/base/nearest.h"

#include <gtest/gtest.h>

namespace unidle {
namespace {

TEST(Nearest, DistanceCountsLetters) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Nearest, IsTheNameWithFewestChanges) {
  const std::vector<std::string> names = {"run", "runs", "diagnose", "compare"};
  EXPECT_EQ(nearest_or("diagonse", names, "see --help"), "did you mean diagnose?");
  EXPECT_EQ(nearest_or("rums", names, "see --help"), "did you mean runs?");
  EXPECT_EQ(nearest_or("train", names, "see --help"), "see --help") << "more than a third of the letters differ";
  EXPECT_EQ(nearest_or("", names, "see --help"), "see --help");
  EXPECT_EQ(nearest_or(std::string(100000, 'x'), {std::string(100000, 'x')}, "see --help"), "see --help");
}

}  // namespace
}  // namespace unidle
