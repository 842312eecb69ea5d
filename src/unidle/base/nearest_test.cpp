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

TEST(Nearest, OrTheOnlyNameThatBeginsWithIt) {
  const std::vector<std::string> names = {"--job-id", "--results", "--retries"};
  EXPECT_EQ(nearest_or("--job", names, "see --help"), "did you mean --job-id?");
  EXPECT_EQ(nearest_or("--re", names, "see --help"), "see --help") << "two letters";
  EXPECT_EQ(nearest_or("--", {"--results-of-all"}, "see --help"), "see --help");
  EXPECT_EQ(nearest_or("load", {"loader.workers", "loader.pin_memory"}, "see --help"), "see --help") << "several";
}

TEST(Nearest, SomeNamesInOrder) {
  const std::vector<std::string> names = {"padding-waste", "loader-per-row", "loader-respawn", "throttled"};
  EXPECT_EQ(nearest("loader", names, 2), (std::vector<std::string>{"loader-per-row", "loader-respawn"}));
  EXPECT_EQ(nearest("throtled", names, 1), (std::vector<std::string>{"throttled"}));
  EXPECT_EQ(nearest("foo", names, 9).size(), names.size());
}

}  // namespace
}  // namespace unidle
