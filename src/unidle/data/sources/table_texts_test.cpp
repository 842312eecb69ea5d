// Tables converted to CSV from other formats: errors name the original file and its rows.
#include "unidle/data/testing/table_files.h"

namespace unidle::data {
namespace {

using testing::Row;

class TableTextsTest : public testing::TableTest {
 protected:
  /// Options for `files` of another format, each with its CSV.
  TableOptions with_texts(const std::vector<std::pair<std::string, std::string>>& files) {
    TableOptions wanted = options({});
    for (const auto& [name, csv] : files) {
      wanted.paths.push_back(put(name, "no text"));
      wanted.texts.push_back({wanted.paths.back(), put("made/" + name + "-1f.csv", csv), {}});
    }
    return wanted;
  }
};

TEST_F(TableTextsTest, RowsAreThoseOfTheText) {
  TableOptions wanted = with_texts({{"a_part10.parquet", "x,y\n3,4\n"}, {"a_part9.parquet", "x,y\n1,2\n"}});
  EXPECT_EQ(rows_of(TableSource(wanted)), (std::vector<Row>{{1, 2}, {3, 4}})) << "parts in the order of their numbers";
  EXPECT_EQ(built_file(TableSource(wanted)).filename().string().rfind("a_part9-", 0), 0U);
  EXPECT_EQ(TableSource(wanted).value_name(1, 0, 1), "'y' in row 2 of all rows of 2 files (headers not counted)");
  EXPECT_EQ(TableSource(with_texts({{"b.parquet", "x,y\n3,4\n"}})).value_name(0, 0, 1),
            "'y' in row 1 of b.parquet (headers not counted)");
  EXPECT_EQ(rows_of(TableSource(with_texts({{"c.parquet", "a;b\n5\n"}}))), (std::vector<Row>{{5}}))
      << "a text that was made is parted by commas";
}

TEST_F(TableTextsTest, ErrorsTellOfTheFileAndItsRow) {
  TableOptions wanted = with_texts({{"a.parquet", "x,w\n1,\"two\nlines, \"\"quoted\"\"\"\n2,b\nthree,c\n"}});
  wanted.features = {"x"};
  expect_error(wanted, ErrorCode::kInput, "a.parquet: row 3");
  expect_error(with_texts({{"a.parquet", "x\n1\n"}, {"b.parquet", "x\n1\nb\n"}}), ErrorCode::kInput,
               "b.parquet: row 2");
  expect_error(with_texts({{"a.parquet", "x\n1\n"}, {"b.parquet", "y\n1\n"}}), ErrorCode::kInput, "b.parquet");
  expect_error(with_texts({{"a.parquet", "x,x\n1,2\n"}}), ErrorCode::kInput, "a.parquet");
  wanted = with_texts({{"a.parquet", "k,x\n1,2\n"}, {"side.arrow", "k,v\n1,2\n1,3\n"}});
  wanted.joins.push_back({"k", {wanted.paths.back()}});
  wanted.paths.pop_back();
  expect_error(wanted, ErrorCode::kInput, "side.arrow: row 2");
}

TEST_F(TableTextsTest, WhatIsLeftOutIsTold) {
  TableOptions wanted = with_texts({{"a.parquet", "x,w\n1,b\n"}, {"b.parquet", "x,w\n1,b\n"}});
  wanted.texts[0].left_out = {{"list", "list<item: int64>"}};
  wanted.texts[1].left_out = {{"list", "list<item: int64>"}, {"when", "timestamp[us, tz=Mars]"}};
  wanted.features = {"x"};
  wanted.targets = {"when"};
  try {
    const TableSource source(wanted);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("a.parquet: has no column when; there are: x, w; left out: "
                        "list (list<item: int64>), when (timestamp[us, tz=Mars])"),
              std::string::npos)
        << error.what();
  }
  wanted.targets = {};
  EXPECT_TRUE(nlohmann::json::parse(TableSource(wanted).describe())["left_out"].empty()) << "features were named";
  wanted.features.reset();
  EXPECT_EQ(nlohmann::json::parse(TableSource(wanted).describe())["left_out"], (nlohmann::json{"w", "list", "when"}));
}

}  // namespace
}  // namespace unidle::data
