#include <gtest/gtest.h>

#include "unidle/data/testing/table_files.h"

namespace unidle::data {
namespace {

using TableRows = std::vector<testing::Row>;

class TableFaultsTest : public testing::TableTest {
 protected:
  TableOptions options(const std::string& name, std::string_view text) { return TableTest::options({put(name, text)}); }
  static TableRows rows_of(const TableOptions& wanted) { return TableTest::rows_of(TableSource(wanted)); }
};

TEST_F(TableFaultsTest, SaysThatHeaderAndRowsArePartedDifferently) {
  try {
    const TableSource source(options("a.csv", "a;b\n1,2\n"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.subject().ends_with("a.csv:2")) << error.what();
    EXPECT_NE(error.message().find("by ';', this one its cells by ','"), std::string::npos) << error.what();
  }
}

TEST_F(TableFaultsTest, LinesOfOldMacsAreLines) {
  EXPECT_EQ(rows_of(options("a.csv", "a,b\r1,2\r\"3\",4\r5,6")), (TableRows{{1, 2}, {3, 4}, {5, 6}}));
  EXPECT_EQ(rows_of(options("b.csv", "\"a\rb\",c\r\n1,2\r\n")), (TableRows{{1, 2}}));
}

TEST_F(TableFaultsTest, TextsThatAreNoUtf8AreRefused) {
  TableOptions wanted = options("a.csv", "a,b\n1,caf\xc3\xa9\n2,caf\xe9\n");
  wanted.categorical = {"b"};
  expect_error(wanted, ErrorCode::kInput, "a.csv:3");
  expect_error(options("b.csv", "a,caf\xe9\n1,2\n"), ErrorCode::kInput, "b.csv:1");
}

TEST_F(TableFaultsTest, NoFeaturesAreNotAllOfThem) {
  TableOptions wanted = options("a.csv", "x,kind\n1,a\n2,b\n");
  wanted.features.emplace();
  expect_error(wanted, ErrorCode::kUsage, "features");
  wanted.categorical = {"kind"};
  EXPECT_EQ(rows_of(wanted), (TableRows{{0}, {1}}));
}

TEST_F(TableFaultsTest, AFillBeyondFloat32IsRefused) {
  TableOptions wanted = options("a.csv", "x,y\n1,\n");
  wanted.fill = TableFill::kValue;
  wanted.fill_value = 1e300;
  expect_error(wanted, ErrorCode::kUsage, "fill");
  wanted.fill_value = -3e38;
  EXPECT_EQ(rows_of(wanted), (TableRows{{1, -3e38F}}));
}

}  // namespace
}  // namespace unidle::data
