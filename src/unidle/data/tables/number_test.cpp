#include "unidle/data/tables/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

namespace unidle::data::tables {
namespace {

TEST(PlainNumberTest, IsWhatStrtodReads) {
  std::mt19937_64 random(3);
  int read = 0;
  for (int round = 0; round < 200000; ++round) {
    std::string text = random() % 2 == 0 ? "-" : "";
    for (std::uint64_t digits = random() % 17; digits > 0; --digits) {
      text += static_cast<char>('0' + random() % 10);
    }
    if (random() % 3 != 0) {
      text += '.';
      for (std::uint64_t digits = random() % 17; digits > 0; --digits) {
        text += static_cast<char>('0' + random() % 10);
      }
    }
    const std::string cell = text + ",9" + std::string(40, '7');
    const PlainNumber number = plain_number(cell.c_str());
    if (number.end == nullptr) {
      continue;
    }
    ++read;
    ASSERT_EQ(number.end, cell.c_str() + text.size()) << text;
    ASSERT_EQ(number.value, std::strtod(text.c_str(), nullptr)) << text;
    ASSERT_EQ(number.whole, text.find('.') == std::string::npos) << text;
  }
  EXPECT_GT(read, 100000);
}

TEST(PlainNumberTest, LeavesTheRestToOthers) {
  for (const char* text : {",", "-,", ".,", "x,", "\"1\",", "12345678901234567890,", "0.1234567890123456789,",
                           "1234567890123456,", "9007199254740993.0,", "\n"}) {
    EXPECT_EQ(plain_number((text + std::string(40, '0')).c_str()).end, nullptr) << text;
  }
}

TEST(CellNumberTest, ReadsAllOfACell) {
  EXPECT_EQ(cell_number("+1.5"), 1.5);
  EXPECT_EQ(cell_number("  -1e-3\t"), -1e-3);
  EXPECT_EQ(cell_number("123456789012345678901234567890"), 123456789012345678901234567890.0);
  EXPECT_TRUE(std::isinf(cell_number("-inf").value()));
  for (const char* text : {"", " ", "1,5", "1 2", "0x10", "1_000", "+-1", "++1", "+", "one", "1.2.3"}) {
    EXPECT_FALSE(cell_number(text)) << text;
  }
}

TEST(CellNumberTest, NoNumberIsMissing) {
  for (const char* text : {"", " ", "NA", "nan", "NULL", "null", "N/A"}) {
    EXPECT_TRUE(is_missing(text)) << text;
  }
  for (const char* text : {"0", "-", "none at all", "Nan."}) {
    EXPECT_FALSE(is_missing(text)) << text;
  }
}

}  // namespace
}  // namespace unidle::data::tables
