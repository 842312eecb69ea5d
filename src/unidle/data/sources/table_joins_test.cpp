// Side tables by key.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "unidle/data/source_kind.h"
#include "unidle/data/testing/table_files.h"

namespace unidle::data {
namespace {

using testing::Row;
using JoinedRows = std::vector<testing::Row>;

class TableJoinsTest : public testing::TableTest {
 protected:
  /// Ratings with side tables of users and films.
  TableOptions ratings() {
    TableOptions wanted = options({put("ratings.csv",
                                       "user_id,film,stars\n"
                                       "7,b,5\n"
                                       "9,a,4\n"
                                       "7,a,3\n"
                                       "8,c,1\n")});
    wanted.joins = {{"user_id", {put("users.csv", "age,user_id,town\n30,7,Rome\n40,8,\n50,9,\"Paris, F\"\n")}},
                    {"film", {put("films.csv", "film;year\r\n\"a\";1990\r\nb;\r\n")}}};
    wanted.targets = {"stars"};
    return wanted;
  }
  static nlohmann::json facts_of(const TableOptions& wanted) {
    return nlohmann::json::parse(TableSource(wanted).describe());
  }
};

TEST_F(TableJoinsTest, ColumnsOfSideTablesAreNamedLikeOnesOwn) {
  TableOptions wanted = ratings();
  wanted.features = {"year", "age", "town"};
  wanted.categorical = {"town"};
  wanted.fill = TableFill::kValue;
  wanted.fill_value = -1;
  const TableSource source(wanted);
  // Towns are numbered in the order of the ratings.
  EXPECT_EQ(rows_of(source), (JoinedRows{{-1, 30, 0, 5}, {1990, 50, 1, 4}, {1990, 30, 0, 3}, {-1, 40, 2, 1}}));
  EXPECT_EQ(source.columns()[2].categories, (std::vector<std::string>{"Rome", "Paris, F", ""}));
  EXPECT_EQ(source.columns()[0].missing, 2);
  EXPECT_EQ(source.columns()[0].type, "integer");
  EXPECT_EQ(source.columns()[2].missing, 1);
  EXPECT_DOUBLE_EQ(source.columns()[1].mean, 37.5);  // over the rows of ratings, not of users
  EXPECT_EQ(facts_of(wanted)["joins"], nlohmann::json::parse(R"([{"key": "user_id", "rows": 3, "unmatched": 0},
                                                                {"key": "film", "rows": 2, "unmatched": 1}])"));
}

TEST_F(TableJoinsTest, WithoutFeaturesTheyAreAllNumbersButTheKeys) {
  const nlohmann::json facts = facts_of(ratings());
  EXPECT_EQ(facts["features"], (std::vector<std::string>{"age", "year"}));
  EXPECT_EQ(facts["left_out"], (std::vector<std::string>{"town"}));
}

TEST_F(TableJoinsTest, AKeyMayBeAFeatureToo) {
  TableOptions wanted = ratings();
  wanted.features = {"user_id", "age"};
  wanted.categorical = {"film"};
  EXPECT_EQ(rows_of(TableSource(wanted)), (JoinedRows{{7, 30, 0, 5}, {9, 50, 1, 4}, {7, 30, 1, 3}, {8, 40, 2, 1}}));
}

TEST_F(TableJoinsTest, RowsWithoutAPartnerHaveMissingValues) {
  TableOptions wanted = options({put("a.csv", "k,x\n1,1\n,2\n3,3\n")});
  wanted.joins = {{"k", {put("b.csv", "k,v,word\n1,10,one\n2,20,two\n")}}};
  wanted.features = {"v"};
  wanted.categorical = {"word"};
  const TableSource source(wanted);
  EXPECT_EQ(row_of(source, 0), (Row{10, 0}));
  for (const int row : {1, 2}) {
    EXPECT_TRUE(std::isnan(row_of(source, row)[0]));
    EXPECT_EQ(row_of(source, row)[1], 1);
  }
  EXPECT_EQ(source.columns()[1].categories, (std::vector<std::string>{"one", ""}));
  EXPECT_EQ(source.columns()[0].missing, 2);
  wanted.fill = TableFill::kMean;
  EXPECT_EQ(row_of(TableSource(wanted), 2)[0], 10);
}

TEST_F(TableJoinsTest, SideTablesComeInPartsAndTwoMayHaveOneKey) {
  put("side_part1.csv", "k,v\n1,10\n");
  put("side_part2.csv", "k,v\n2,20\n");
  TableOptions wanted = options({put("a.csv", "k\n2\n1\n")});
  wanted.joins = {{"k", {(folder_.path() / "side.csv").string()}}, {"k", {put("other.csv", "k,w\n1,100\n2,200\n")}}};
  EXPECT_EQ(rows_of(TableSource(wanted)), (JoinedRows{{20, 200}, {10, 100}}));
}

TEST_F(TableJoinsTest, SaysWhereAndWhatIsWrong) {
  const auto expect = [&](std::string_view side, const std::string& subject) {
    TableOptions wanted = options({put("a.csv", "k,x\n1,1\n2,2\n")});
    wanted.joins = {{"k", {put("b.csv", side)}}};
    expect_error(wanted, ErrorCode::kInput, subject);
  };
  expect("k,v\n1,\"a\nb\"\n2,1\n1,2\n", "b.csv:5");  // duplicate key 1
  expect("k,v\n1,1\n,2\n", "b.csv:3");               // empty key
  expect("k,v\n1,1\n2\n", "b.csv:3");
  expect("key,v\n1,1\n", "b.csv:1");
  expect("k,x\n1,1\n", "b.csv:1");  // x is in both
  TableOptions wanted = ratings();
  wanted.joins[0].key = "user";
  expect_error(wanted, ErrorCode::kInput, "ratings.csv:1");
  wanted = ratings();
  wanted.features = {"height"};
  expect_error(wanted, ErrorCode::kInput, "ratings.csv:1");
  wanted.joins[0].paths.clear();
  expect_error(wanted, ErrorCode::kUsage, "joins");
  wanted = ratings();
  wanted.features = {"age", "age"};
  expect_error(wanted, ErrorCode::kUsage, "table column age");
}

TEST_F(TableJoinsTest, ANameOfTwoTablesIsRefusedWhereItIsUsed) {
  TableOptions wanted = options({put("a.csv", "k,x,y\n1,1,5\n")});
  wanted.joins = {{"k", {put("b.csv", "k,x,v\n1,3,7\n")}}};
  wanted.features = {"v"};
  EXPECT_EQ(rows_of(TableSource(wanted)), (JoinedRows{{7}}));
  wanted.features = {"v", "x"};
  expect_error(wanted, ErrorCode::kInput, "b.csv:1");
  wanted.features = {"v"};
  wanted.split = {.column = "x", .values = {"1"}};
  expect_error(wanted, ErrorCode::kInput, "b.csv:1");
}

TEST_F(TableJoinsTest, AColumnOfASideTableDividesTheRows) {
  std::string rows = "user,x\n";
  for (int i = 0; i < 40; ++i) {
    rows += "u" + std::to_string(i % 4) + "," + std::to_string(i) + "\n";
  }
  TableOptions wanted = options({put("a.csv", rows)});
  wanted.joins = {{"user", {put("users.csv", "user,group,age\nu0,test,1\nu1,train,2\nu2,test,3\n")}}};
  wanted.features = {"x", "age"};
  wanted.fill = TableFill::kMean;
  wanted.split = {.column = "group", .values = {"test"}};
  wanted.part = TablePart::kValidation;
  const TableSource validation(wanted);
  ASSERT_EQ(validation.items(), 20);
  for (const Row& row : rows_of(validation)) {
    EXPECT_EQ(static_cast<int>(row[0]) % 2, 0);
  }
  wanted.part = TablePart::kTrain;
  EXPECT_EQ(rows_of(TableSource(wanted))[1], (Row{3, 2}));  // the mean age of the training rows: only u1's
  wanted.split.values = {""};                               // rows without a match
  wanted.part = TablePart::kValidation;
  EXPECT_EQ(TableSource(wanted).items(), 10);
}

TEST_F(TableJoinsTest, IsBuiltAnewWhenASideTableChanges) {
  TableOptions wanted = ratings();
  EXPECT_TRUE(was_built(TableSource(wanted)));
  EXPECT_FALSE(was_built(TableSource(wanted)));
  put("users.csv", "age,user_id,town\n31,7,Rome\n40,8,\n50,9,\"Paris, F\"\n");  // the same size
  const TableSource changed(wanted);
  EXPECT_TRUE(was_built(changed));
  EXPECT_EQ(row_of(changed, 0)[0], 31);
  wanted.joins[0].paths = {put("other.csv", "age,user_id\n1,7\n")};
  EXPECT_TRUE(was_built(TableSource(wanted)));
}

TEST_F(TableJoinsTest, ASideTableThatChangesWhileItIsReadMakesNoTable) {
  TableOptions wanted = ratings();
  wanted.progress = [&](std::uint64_t, std::uint64_t) { put("films.csv", "film;year\r\na;1991\r\n"); };
  expect_error(wanted, ErrorCode::kInput, "films.csv");
  wanted.progress = {};
  const TableSource source(wanted);
  EXPECT_TRUE(was_built(source));
  EXPECT_EQ(row_of(source, 1)[1], 1991);
}

TEST_F(TableJoinsTest, TheBuiltFileIsTheSameForAnyNumberOfThreads) {
  std::string rows = "k,x\n";
  for (int i = 0; i < 900'000; ++i) {
    rows += std::to_string((i * 7919L) % 2003) + "," + std::to_string(i) + "\n";
  }
  std::string side = "k,v,word\n";
  for (int i = 0; i < 2000; ++i) {  // 2000 to 2002 have no match
    side += std::to_string(i) + "," + std::to_string(i * 2) + ",w" + std::to_string(i % 37) + "\n";
  }
  TableOptions wanted = options({put("a.csv", rows)});
  wanted.joins = {{"k", {put("side.csv", side)}}};
  wanted.features = {"x", "v"};
  wanted.categorical = {"word"};
  std::string first;
  for (const int threads : {1, 2, 5}) {
    wanted.threads = threads;
    wanted.cache = (folder_.path() / std::to_string(threads)).string();
    const TableSource source(wanted);
    const std::string bytes = read_file(built_file(source));
    first = first.empty() ? bytes : first;
    EXPECT_EQ(bytes, first);
    const long key = (899'999 * 7919L) % 2003;
    EXPECT_EQ(row_of(source, 899'999)[1], static_cast<float>(2 * key));
  }
}

TEST_F(TableJoinsTest, OptionsComeByName) {
  const std::string rows = put("a.csv", "k\n1\n");
  const std::string side = put("b.csv", "k,v\n1,5\n");
  const auto open = [&](nlohmann::json joins) {
    const nlohmann::json asked = {{"paths", {rows}}, {"joins", joins}, {"cache", (folder_.path() / "built").string()}};
    return open_source("table", asked.dump(), {});
  };
  EXPECT_EQ(open({{{"key", "k"}, {"paths", {side}}}})->items(), 1);
  for (const nlohmann::json& joins :
       {nlohmann::json("k"), nlohmann::json{1}, nlohmann::json{{{"key", "k"}, {"path", side}}},
        nlohmann::json{{{"key", 1}, {"paths", {side}}}}}) {
    try {
      open(joins);
      FAIL() << joins;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
    }
  }
}

}  // namespace
}  // namespace unidle::data
