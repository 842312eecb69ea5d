#include "unidle/data/tables/column_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unidle::data::tables {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

ColumnStatistics look_of(const std::vector<std::string>& cells, const NumberFormat& format = kPlainNumbers) {
  ColumnStatistics look(format);
  for (const std::string& cell : cells) {
    look.add(cell);
  }
  return look;
}

std::vector<std::string> numbers_and(const std::vector<std::string>& others, int numbers = 95) {
  std::vector<std::string> cells = others;
  for (int i = 0; i < numbers; ++i) {
    cells.push_back(std::to_string(i));
  }
  return cells;
}

TEST(ColumnLookTest, MarksThatStandForNoValueAreOffered) {
  for (const char* marker : {"?", ".", "-", "--", "...", "*", "unknown", "Missing", " ? ", "n.a."}) {
    const ColumnStatistics look = look_of(numbers_and({marker, marker}));
    const std::string text(without_blanks(marker));
    EXPECT_FALSE(look.is_of_numbers());
    EXPECT_TRUE(look.is_mostly_numbers());
    EXPECT_EQ(look.options(), "missing=[\"" + text + "\"]");
    EXPECT_EQ(look.what(),
              "numbers in 95 of 97 cells, others in 2 (\"" + text + "\"); missing=[\"" + text + "\"] reads them");
  }
  EXPECT_EQ(look_of(numbers_and({"?", "-", "?"})).options(), "missing=[\"?\", \"-\"]");
}

TEST(ColumnLookTest, OtherTextsAreToldAndNotExplainedAway) {
  const ColumnStatistics few = look_of(numbers_and({"abc", "?", "12a"}));
  EXPECT_TRUE(few.is_mostly_numbers());
  EXPECT_EQ(few.options(), "");
  EXPECT_EQ(few.what(), "numbers in 95 of 98 cells, others in 3 (\"abc\", \"12a\", \"?\")");
  EXPECT_EQ(look_of(numbers_and({"\u4e00", "\u00e9"})).options(), "") << "letters, whatever the sign of a char is";
  const ColumnStatistics many = look_of(numbers_and({"A/5 21171", "PC 17599"}, 5));
  EXPECT_FALSE(many.is_mostly_numbers());
  EXPECT_EQ(look_of({"+", "-", "+"}).what(), "texts (\"+\", \"-\")");
  EXPECT_FALSE(look_of({"?", "?"}).is_mostly_numbers());
  EXPECT_EQ(look_of({"", " ", "NA", "nan"}).what(), "all cells are empty");
  EXPECT_TRUE(look_of({"", "NA"}).is_blank());
  EXPECT_FALSE(look_of({}).is_blank());
  EXPECT_TRUE(look_of({"", "1", " 2 "}).is_of_numbers());
}

TEST(ColumnLookTest, DecimalCommasAreOfferedAndThousandsAreNot) {
  EXPECT_EQ(look_of({"1,5", "2", "3,25"}).options(), "decimal=\",\"");
  EXPECT_EQ(look_of({"1,5", "-", ",5", "1,5e3"}).options(), "missing=[\"-\"], decimal=\",\"");
  EXPECT_THAT(look_of({"1,5"}).what(), StartsWith("numbers with decimal commas (\"1,5\") in 1 of 1 cells"));
  const ColumnStatistics either = look_of({"1,234", "2,500", "7"});
  EXPECT_TRUE(either.is_mostly_numbers());
  EXPECT_EQ(either.options(), "");
  EXPECT_THAT(either.what(), EndsWith("groups of thousands are not read"));
  const ColumnStatistics groups = look_of({"1,234,567", "2,500", "7"});
  EXPECT_TRUE(groups.is_mostly_numbers());
  EXPECT_EQ(groups.options(), "");
  EXPECT_THAT(groups.what(), StartsWith("numbers in groups of thousands with commas (\"1,234,567\", \"2,500\")"));
  EXPECT_EQ(look_of({"1,5", "Paris, France"}).options(), "");
}

TEST(ColumnLookTest, LooksWithTheFormatThatIsAskedFor) {
  const NumberFormat format({"?", "-200"}, ',');
  EXPECT_TRUE(look_of({"1,5", "?", "-200", "-200,0"}, format).is_of_numbers());
  EXPECT_EQ(look_of({"?", "-200"}, format).filled(), 0);
  EXPECT_EQ(look_of({"1.5", "2.5"}, format).options(), "decimal=\".\"");
  const NumberFormat numbers({"-999.5"}, ',');  // numbers as programs write them
  EXPECT_TRUE(numbers.is_missing(-999.5));
}

TEST(ColumnLookTest, AdviceForOneText) {
  EXPECT_EQ(advice_for(" ? ", kPlainNumbers), "; missing=[\"?\"] reads it as missing");
  EXPECT_EQ(advice_for("1,5", kPlainNumbers), "; decimal=\",\" reads it as a number");
  EXPECT_EQ(advice_for("1,234", kPlainNumbers), "");
  EXPECT_EQ(advice_for("abc", kPlainNumbers), "");
}

TEST(ColumnLookTest, TextsAreCutBetweenCharacters) {
  EXPECT_EQ(look_of({"ééééééééééééééé"}).what(), "texts (\"éééééééééé...\")");
  EXPECT_EQ(look_of({"aééééééééééééééé"}).what(), "texts (\"aééééééééé...\")");
}

}  // namespace
}  // namespace unidle::data::tables
