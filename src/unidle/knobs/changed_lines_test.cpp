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

TEST(LineOf, IsEmptyWhereThereIsNone) {
  EXPECT_EQ(line_of("a\nb", 2), "b");
  EXPECT_EQ(line_of("a\nb", 3), "");
  EXPECT_EQ(line_of("a\nb", 0), "");
}

}  // namespace
}  // namespace unidle::knobs
