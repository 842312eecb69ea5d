#include "unidle/data/csv_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unidle/base/error.h"

namespace unidle::data {
namespace {

using Records = std::vector<std::vector<std::string>>;

Records records_of(std::string_view text) {
  CsvRows rows(text, "a.csv");
  Records records;
  while (rows.next()) {
    records.push_back(rows.fields());
  }
  return records;
}

TEST(CsvRowsTest, ReadsWhatTheStandardSays) {
  EXPECT_EQ(records_of("a,b\n1,2\n"), (Records{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(records_of("a,b\r\n1,2"), (Records{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(records_of("\xef\xbb\xbf"
                       "a,b\n"),
            (Records{{"a", "b"}}));
  EXPECT_EQ(records_of("\"a,b\",\"say \"\"x\"\"\"\n"), (Records{{"a,b", "say \"x\""}}));
  EXPECT_EQ(records_of("\"two\r\nlines\",1\n2,3\n"), (Records{{"two\r\nlines", "1"}, {"2", "3"}}));
  EXPECT_EQ(records_of(",\n\n,,\n"), (Records{{"", ""}, {"", "", ""}}));
  EXPECT_EQ(records_of("a\rb,c\n"), (Records{{"a\rb", "c"}}));
  EXPECT_EQ(records_of("\"\"\n"), (Records{{""}}));
  EXPECT_EQ(records_of(""), Records{});
}

TEST(CsvRowsTest, CountsLinesOverQuotedOnes) {
  CsvRows rows("a\n\"x\ny\nz\",2\n\n7\n", "a.csv");
  std::vector<std::int64_t> lines;
  while (rows.next()) {
    lines.push_back(rows.line());
  }
  EXPECT_THAT(lines, ::testing::ElementsAre(1, 2, 6));
}

TEST(CsvRowsTest, NamesTheLineOfABrokenQuote) {
  for (const auto& [text, line] : {std::pair{"a\n\"x\ny", "a.csv:2"}, {"a\n\"x\ny\"z,1\n", "a.csv:3"}}) {
    try {
      records_of(text);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_EQ(error.subject(), line);
    }
  }
}

}  // namespace
}  // namespace unidle::data
