#include "unidle/base/numbers.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace unidle {
namespace {

TEST(ParseNumber, TakesAllOfTheText) {
  EXPECT_EQ(parse_number<int>("42"), 42);
  EXPECT_EQ(parse_number<std::int64_t>("-7"), -7);
  EXPECT_EQ(parse_number<double>("1e-4"), 1e-4);
}

TEST(ParseNumber, NothingElseWillDo) {
  for (const char* text : {"", " 4", "4 ", "4x", "x", "+4", "0x10", "1.5"}) {
    EXPECT_FALSE(parse_number<int>(text)) << text;
  }
  EXPECT_FALSE(parse_number<unsigned>("-1"));
  EXPECT_FALSE(parse_number<std::int8_t>("300"));
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "1,5"}) {
    EXPECT_FALSE(parse_number<double>(text)) << text;
  }
}

}  // namespace
}  // namespace unidle
