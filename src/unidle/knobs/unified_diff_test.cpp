#include <gtest/gtest.h>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs {
namespace {

TEST(UnifiedDiff, EqualTextsHaveNone) { EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n", "x"), ""); }

TEST(UnifiedDiff, ShowsThreeLinesOfContext) {
  EXPECT_EQ(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "x"),
            "--- x\n+++ x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(UnifiedDiff, JoinsNearChangesAndSplitsFarOnes) {
  const std::string before = "a\n1\n2\n3\n4\n5\n6\n7\n8\nb\n";
  EXPECT_EQ(unified_diff(before, "A\n1\n2\n3\n4\n5\n6\n7\n8\nB\n", "x"),
            "--- x\n+++ x\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -7,4 +7,4 @@\n 6\n 7\n 8\n-b\n+B\n");
  EXPECT_EQ(unified_diff("a\n1\n2\n3\nb\n", "A\n1\n2\n3\nB\n", "x"),
            "--- x\n+++ x\n@@ -1,5 +1,5 @@\n-a\n+A\n 1\n 2\n 3\n-b\n+B\n");
}

TEST(UnifiedDiff, MarksAMissingLastLineEnd) {
  EXPECT_EQ(unified_diff("a\nb", "a\nb\nc\n", "x"),
            "--- x\n+++ x\n@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n");
}

TEST(UnifiedDiff, EndsANameWithBlanks) {
  EXPECT_EQ(unified_diff("a\n", "b\n", "my x.py"), "--- my x.py\t\n+++ my x.py\t\n@@ -1 +1 @@\n-a\n+b\n");
}

TEST(UnifiedDiff, InsertsIntoNothing) { EXPECT_EQ(unified_diff("", "a\n", "x"), "--- x\n+++ x\n@@ -0,0 +1 @@\n+a\n"); }

}  // namespace
}  // namespace unidle::knobs
