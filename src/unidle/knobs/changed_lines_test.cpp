#include "unidle/knobs/changed_lines.h"

#include <gmock/gmock.h>

namespace unidle::knobs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ChangedLines, FromTheFirstToTheLast) {
  const ChangedLines changed = changed_lines("a\r\nb\r\nc", "a\r\nB\r\nc");
  EXPECT_EQ(changed.line, 2);
  EXPECT_THAT(changed.before, ElementsAre("b"));
  EXPECT_THAT(changed.after, ElementsAre("B"));
  EXPECT_THAT(changed_lines("a\na\n", "a\na\na\n").before, IsEmpty()) << "a line was added";
  EXPECT_THAT(changed_lines("a\na\n", "a\na\na\n").after, ElementsAre("a"));
  EXPECT_THAT(changed_lines("a\n", "a\n").after, IsEmpty());
}

TEST(WithLines, TheOtherBytesStay) {
  EXPECT_EQ(with_lines("a\r\nb\nc", {2, {"b"}, {"B", "BB"}}), "a\r\nB\nBB\nc");
  EXPECT_EQ(with_lines("a\r\nb\nc", {1, {"a"}, {"A"}}), "A\r\nb\nc");
  EXPECT_EQ(with_lines("a\nb", {2, {"b"}, {"B"}}), "a\nB");
  EXPECT_EQ(with_lines("a\nb\n", {1, {"a", "b"}, {}}), "");
}

TEST(WithLines, NothingWhereOtherLinesAre) {
  EXPECT_FALSE(with_lines("a\nb", {1, {"b"}, {"B"}}));
  EXPECT_FALSE(with_lines("a\nb", {2, {"b", "c"}, {"B"}}));
  EXPECT_FALSE(with_lines("a\nb", {0, {"a"}, {"A"}}));
  EXPECT_FALSE(with_lines("", {1, {"a"}, {"A"}}));
}

TEST(ChangesOfADiff, WithTheirContext) {
  const auto changes =
      changes_of_diff("--- a.py\n+++ a.py\n@@ -1,2 +1,3 @@\n+import b\n a\n-b\n+B\n@@ -9 +10 @@\n-c\n+C\n");
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].line, 1);
  EXPECT_THAT(changes[0].before, ElementsAre("a", "b"));
  EXPECT_THAT(changes[0].after, ElementsAre("import b", "a", "B"));
  EXPECT_EQ(changes[1].line, 9);
  EXPECT_THAT(changes[1].after, ElementsAre("C"));
  EXPECT_THAT(changes_of_diff("no diff\n+at all\n"), IsEmpty());
}

TEST(Excerpt, ShowsTheChangeInALongLine) {
  const std::string filler(1000, 'x');
  EXPECT_EQ(excerpt("short", "other"), "short");
  EXPECT_EQ(excerpt(filler + "a=1" + filler, filler + "a=16" + filler).size(), 60 + 60 + 6 + 0U);
  EXPECT_EQ(excerpt(filler + "a=1", filler + "a=2"), "..." + filler.substr(0, 58) + "a=1");
  EXPECT_EQ(excerpt(filler, ""), filler.substr(0, 300) + "...");
  EXPECT_EQ(excerpt("ä" + filler, "ö" + filler).substr(0, 2), "ä");
}

TEST(LineOf, IsEmptyWhereThereIsNone) {
  EXPECT_EQ(line_of("a\nb", 2), "b");
  EXPECT_EQ(line_of("a\nb", 3), "");
  EXPECT_EQ(line_of("a\nb", 0), "");
}

}  // namespace
}  // namespace unidle::knobs
