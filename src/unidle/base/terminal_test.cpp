#include "unidle/base/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace unidle {
namespace {

TEST(Terminal, WrapsAtWordsAndIndentsTheRest) {
  EXPECT_EQ(wrap("one two three four", 9, 2), "one two\n  three\n  four");
  EXPECT_EQ(wrap("one two", 80, 4), "one two");
  EXPECT_EQ(wrap("", 10), "");
}

TEST(Terminal, AWordLongerThanTheLineStaysWhole) { EXPECT_EQ(wrap("a verylongword b", 5), "a\nverylongword\nb"); }

TEST(Terminal, CountsCodePointsNotBytes) { EXPECT_EQ(wrap("äöü äöü", 7), "äöü äöü"); }

TEST(Terminal, AFileHasNoColour) {
  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(use_colour(file));
  ::setenv("COLUMNS", "133", 1);
  EXPECT_EQ(terminal_width(file), 133);
  ::setenv("COLUMNS", "nonsense", 1);
  EXPECT_EQ(terminal_width(file), 80);
  ::unsetenv("COLUMNS");
  std::fclose(file);
}

}  // namespace
}  // namespace unidle
