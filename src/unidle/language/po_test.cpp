#include "unidle/language/po.h"

#include <gmock/gmock.h>

#include "unidle/base/error.h"

namespace unidle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Po, EntriesInTheirOrder) {
  EXPECT_THAT(read_po(R"(msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

# A translator's note.
#: src/a.cpp:7
msgid "waits"
msgstr "等待"

msgid ""
"two "
"parts\n"
msgstr ""
"两"
"部分\t\"\\\"\n"
)",
                      "a.po"),
              ElementsAre(Pair("waits", "等待"), Pair("two parts\n", "两部分\t\"\\\"\n")));
}

TEST(Po, WhatHasNoTranslationIsLeftOut) {
  EXPECT_THAT(read_po("msgid \"a\"\nmsgstr \"\"\n", "a.po"), IsEmpty());
  EXPECT_THAT(read_po("#, fuzzy\nmsgid \"a\"\nmsgstr \"b\"\nmsgid \"c\"\nmsgstr \"d\"\n", "a.po"),
              ElementsAre(Pair("c", "d")));
  EXPECT_THAT(read_po("#~ msgid \"a\"\n#~ msgstr \"b\"\n", "a.po"), IsEmpty());
  EXPECT_THAT(read_po("#, fuzzy\n#~ msgid \"a\"\n#~ msgstr \"b\"\n\nmsgid \"c\"\nmsgstr \"d\"\n", "a.po"),
              ElementsAre(Pair("c", "d")))
      << "an obsolete entry's flag is not the next entry's";
  EXPECT_THAT(read_po("", "a.po"), IsEmpty());
}

TEST(Po, AnErrorNamesTheLine) {
  for (const char* bad : {"\nmsgid a\n", "\nmsgstr \"a\"\n", "\n\"a\"\n", "\nmsgid \"a\\q\"\n", "\nmsgid \"a\n",
                          "msgid \"a\"\n", "\nmsgid_plural \"a\"\n", "\nmsgid \"a\\\"\n"}) {
    try {
      read_po(bad, "a.po");
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_THAT(error.subject(), ::testing::MatchesRegex("a\\.po:[12]")) << bad;
    }
  }
}

}  // namespace
}  // namespace unidle
