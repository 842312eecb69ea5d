#include "unidle/base/layout.h"

#include <gtest/gtest.h>

#include <sstream>

#include "unidle/base/printable.h"

namespace unidle {
namespace {

TEST(Layout, WordsFillLines) {
  EXPECT_EQ(fill("one two three", 7), "one two\nthree");
  EXPECT_EQ(fill("  one\n two  ", 80), "one two");
  EXPECT_EQ(fill("", 10), "");
}

TEST(Layout, AWordThatNoLineHoldsIsBroken) { EXPECT_EQ(fill("a abcdefgh b", 4), "a\nabcd\nefgh\nb"); }

TEST(Layout, WideCharactersTakeTwoColumnsAndBreakAnywhere) {
  EXPECT_EQ(display_width("等待 5 s"), 8);
  EXPECT_EQ(fill("等待数据", 5), "等待\n数据");
  EXPECT_EQ(fill("等待 loader 数据", 9), "等待\nloader 数\n据");
}

TEST(Layout, ClosingPunctuationStaysWithItsWord) {
  // A full stop cannot begin a line, so the character before it moves along.
  EXPECT_EQ(fill("等待数据。", 8), "等待数\n据。");
}

TEST(Layout, ANumberStaysWithItsUnit) {
  EXPECT_EQ(fill("it waits 40 % of it", 12), "it waits\n40 % of it");
  EXPECT_EQ(fill("a step of 12.5 ms, then", 14), "a step of\n12.5 ms, then");
  EXPECT_EQ(fill("reads 3 GiB/s (9 MB)", 9), "reads\n3 GiB/s\n(9 MB)");
  EXPECT_EQ(fill("等待 40 %，然后", 9), "等待\n40 %，然\n后");
  EXPECT_EQ(fill("of 12 steps", 6), "of 12\nsteps") << "what is counted is a word";
}

TEST(Layout, NoUtf8IsNoTrouble) {
  const std::string odd = "\xff\xfe\xe4 a\xe4\xbd";
  EXPECT_GT(display_width(odd), 0);
  EXPECT_FALSE(fill(odd, 2).empty());
}

TEST(Layout, BlocksKeepToTheWidth) {
  for (int width = 10; width < 60; ++width) {
    std::istringstream lines(block("some words, 一些中文字符。 and/a/long/path/of/a/file.py:12", width, 2, "- "));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), width) << line;
    }
  }
  EXPECT_EQ(block("one two", 7, 1, "- "), " - one\n   two\n");
}

TEST(Layout, ProgressKeepsToTheWidth) {
  EXPECT_EQ(progress_line("reading", 2, 8, "x/s", 1, 80), "reading [######..................] 2/8 x/s ETA 3.0 s");
  for (int columns = 1; columns < 70; ++columns) {
    const std::string line = progress_line("正在读取", 2, 8, "输入等待 3 %", 1, columns);
    EXPECT_LE(display_width(line), columns) << line;
    EXPECT_EQ(line, printable_line(line)) << "a character is cut";
  }
}

TEST(CommandBlock, CanBeCopiedIntoAShell) {
  EXPECT_EQ(command_block("unidle run -- python train.py --epochs 3", 26, 3, "try: "),
            "   try: unidle run -- \\\n        python train.py \\\n        --epochs 3\n");
  EXPECT_EQ(command_block("a b", 40, 0, ""), "a b\n");
  EXPECT_EQ(command_block("", 40, 0, ""), "\n");
}

TEST(CommandBlock, LeavesQuotedWordsAsTheyAre) {
  EXPECT_EQ(command_block("python -c 'a  b\nc' x", 12, 0, ""), "python -c \\\n'a  b\nc' x\n");
  EXPECT_EQ(command_block("python -c 'a  b\nc' x", 14, 0, ""), "python \\\n-c 'a  b\nc' \\\nx\n");
  EXPECT_EQ(command_block("echo 'it'\\''s  so' \"x  y\"", 10, 0, ""), "echo \\\n'it'\\''s  so' \\\n\"x  y\"\n");
  EXPECT_EQ(command_block("echo 'not closed", 10, 0, ""), "echo \\\n'not closed\n");
}

}  // namespace
}  // namespace unidle
