#include "unidle/base/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

namespace unidle {
namespace {

TEST(Terminal, WrapsAtWordsAndIndentsTheRest) {
  EXPECT_EQ(wrap("one two three four", 9, 2), "one two\n  three\n  four");
  EXPECT_EQ(wrap("one two", 80, 4), "one two");
  EXPECT_EQ(wrap("", 10), "");
}

TEST(Terminal, AWordLongerThanTheLineStaysWhole) { EXPECT_EQ(wrap("a verylongword b", 5), "a\nverylongword\nb"); }

TEST(Terminal, CountsColumnsNotBytes) { EXPECT_EQ(wrap("äöü äöü", 7), "äöü äöü"); }

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

std::string written(const std::function<void(std::FILE*)>& write) {
  char* bytes = nullptr;
  std::size_t size = 0;
  std::FILE* file = ::open_memstream(&bytes, &size);
  write(file);
  std::fclose(file);
  const std::string text(bytes, size);
  std::free(bytes);
  return text;
}

TEST(Terminal, WhatIsWrittenHasOnlyOurOwnStyles) {
  const std::string mark = "\uFFFD";
  EXPECT_EQ(written([](std::FILE* file) { print_to(file, "{} {}\n", painted("a\x1b[2J", "31;1"), "\x1b[31mb"); }),
            "\x1b[31;1ma" + mark + "[2J\x1b[0m " + mark + "[31mb\n");
  EXPECT_EQ(written([](std::FILE* file) { write_to(file, "plain\n"); }), "plain\n");
}

TEST(Terminal, AStyleThatWasSeenElsewhereIsNoStyle) {
  // Text that another process or an earlier record may contain.
  const std::string mark = "\uFFFD";
  EXPECT_EQ(written([](std::FILE* file) { write_to(file, "\x1b{0123456789abcdef:31mb"); }),
            mark + "{0123456789abcdef:31mb");
}

TEST(Terminal, AStreamThatRefusesIsAnError) {
  std::FILE* full = std::fopen("/dev/full", "w");
  std::setvbuf(full, nullptr, _IONBF, 0);
  EXPECT_THROW(write_to(full, "x"), std::exception);
  std::fclose(full);
}

}  // namespace
}  // namespace unidle
