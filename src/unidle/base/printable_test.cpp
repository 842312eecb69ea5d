#include "unidle/base/printable.h"

#include <gtest/gtest.h>

namespace unidle {
namespace {

constexpr const char* kShown = "\uFFFD";

TEST(Printable, WhatPeopleReadStaysAsItIs) {
  const std::string text = "loss 0.5\tä 最多 🚀 👩‍💻\nnext\r\nend";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ControlCharactersAreReplaced) {
  const std::string mark = kShown;
  EXPECT_EQ(printable("a\x1b[2Jb"), "a" + mark + "[2Jb");
  EXPECT_EQ(printable("a\x1b]52;c;cm0K\a"), "a" + mark + "]52;c;cm0K" + mark);
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a" + mark + "b");
  EXPECT_EQ(printable("a\x7f\b\v\f"), "a" + mark + mark + mark + mark);
  EXPECT_EQ(printable("50 %\rdone"), "50 %" + mark + "done") << "a lone return writes over what stands there";
  EXPECT_EQ(printable("a\u009b2J"), "a" + mark + "2J") << "C1 as UTF-8";
}

TEST(WithoutEscapes, WholeSequencesGo) {
  EXPECT_EQ(without_escapes("plain [1m"), "plain [1m");
  EXPECT_EQ(without_escapes("\x1b[1mdo those steps\x1b[0m now"), "do those steps now");
  EXPECT_EQ(without_escapes("\x1b[38;5;196;1ma\x1b[2K\x1b[?25hb\x1b(B\x1b[m"), "ab");
  EXPECT_EQ(without_escapes("a\x1b]0;title\ab\x1b]8;;http://x\x1b\\c"), "abc");
}

TEST(WithoutEscapes, WhatIsNotEndedTakesNothingElseWithIt) {
  EXPECT_EQ(without_escapes("a\x1b"), "a");
  EXPECT_EQ(without_escapes("a\x1b[31"), "a");
  EXPECT_EQ(without_escapes("a\x1b[31\nValueError: b"), "a\nValueError: b");
  EXPECT_EQ(without_escapes("a\x1b]0;title\nValueError: b\a"), "a]0;title\nValueError: b\a");
}

TEST(Printable, DirectionAndUnseenCharactersAreReplaced) {
  const std::string mark = kShown;
  for (const char* each : {"\u202e", "\u2066", "\u200f", "\u061c", "\u2028", "\ufeff", "\U000e0041", "\ufff9"}) {
    EXPECT_EQ(printable(std::string("a") + each + "b"), "a" + mark + "b");
  }
}

TEST(Printable, WhatIsNoUtf8IsReplacedByteByByte) {
  const std::string mark = kShown;
  EXPECT_EQ(printable("a\x9b"
                      "2J"),
            "a" + mark + "2J")
      << "C1 as one byte";
  EXPECT_EQ(printable("\xc0\x9b"), mark + mark) << "overlong";
  EXPECT_EQ(printable("\xe0\x80\x9b"), mark + mark + mark);
  EXPECT_EQ(printable("\xed\xa0\x80"), mark + mark + mark) << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), mark + mark + mark + mark) << "beyond the last code point";
  EXPECT_EQ(printable("ab\xe2\x82"), "ab" + mark + mark) << "cut off";
  EXPECT_EQ(printable("\xff\xfe"), mark + mark);
}

TEST(Printable, ALineHasNoEnd) {
  EXPECT_EQ(printable_line("a\nunidle: all is well\r\n\tb"), "a unidle: all is well   b");
}

}  // namespace
}  // namespace unidle
