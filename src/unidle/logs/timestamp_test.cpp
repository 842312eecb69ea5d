#include "unidle/logs/timestamp.h"

#include <gtest/gtest.h>

#include "unidle/logs/detail/numbers.h"

namespace unidle::logs {
namespace {

std::string at_begin(std::string_view line) {
  StampReader reader;
  const auto stamp = reader.at_begin(line);
  return stamp ? format_stamp(stamp->ns) : "";
}

TEST(Timestamp, AtTheFrontOfLines) {
  const std::string want = "2025-08-22 16:47:34";
  for (const char* line :
       {"2025-08-22 16:47:34 - root - INFO", "2025-08-22 16:47:34,123 INFO", "[2025-08-22 16:47:34] x",
        "2025/08/22 16:47:34.159, 0 %", "2025-08-22T16:47:34.5Z x", "2025-08-22T16:47:34+08:00 x",
        "08/22/2025 16:47:34 - INFO", "[2025-08-22 16:47:34,123][root] x", "INFO 2025-08-22 16:47:34 train.py:9 x",
        "[WARNING] 2025-08-22 16:47:34 x", "ERROR:2025-08-22 16:47:34,123:x",
        "[rank0]:2025-08-22 16:47:34,123 - root - INFO - x", "[default3]:[2025-08-22 16:47:34] x",
        "[1,3]<stdout>:2025-08-22 16:47:34 x", " 12: 2025-08-22 16:47:34 x", "0: [2025-08-22 16:47:34,1] x"}) {
    EXPECT_EQ(at_begin(line), want) << line;
  }
  EXPECT_EQ(at_begin("I0822 16:47:34.123456 123 main.py:1] x"), "1972-08-22 16:47:34");  // unknown year
  for (const char* line :
       {"", "epoch 3", "2025-13-22 16:47:34", "2025-02-30 16:47:34", "2025-08-22 25:00:00", "12:34", "2025-08-22",
        "STEP 2025-08 of 9", "99999999999999999999", "1234-", "12:34:56.7it/s", "3: epoch 2025-08-22"}) {
    EXPECT_EQ(at_begin(line), "") << line;
  }
}

TEST(Timestamp, KeepsFractions) {
  StampReader reader;
  const auto first = reader.at_begin("2025-08-22 16:47:34,250 x");
  const auto second = reader.at_begin("2025-08-22 16:47:35.500 x");
  EXPECT_EQ(second->ns - first->ns, 1'250'000'000);
}

TEST(Timestamp, ATimeWithoutADayBelongsToTheLastDayOrTheNext) {
  StampReader reader;
  const auto first = reader.at_begin("23:59:58 a");
  const auto second = reader.at_begin("00:00:01 b");
  EXPECT_EQ(second->ns - first->ns, 3'000'000'000);
  EXPECT_FALSE(second->has_year);
  reader.at_begin("2025-08-22 16:47:34 c");
  const auto third = reader.at_begin("16:48:00 d");
  EXPECT_TRUE(third->has_year);
  EXPECT_EQ(format_stamp(third->ns), "2025-08-22 16:48:00");
  EXPECT_EQ(format_stamp(reader.at_begin("[08/23 01:00:00 d2.utils]: e")->ns), "2025-08-23 01:00:00");
}

TEST(Timestamp, Anywhere) {
  StampReader reader;
  EXPECT_EQ(format_stamp(reader.anywhere("作业开始时间: Mon Aug  4 13:47:37 HKT 2025")->ns), "2025-08-04 13:47:37");
  EXPECT_EQ(format_stamp(reader.anywhere("Mon Aug  4 13:47:38 2025       ")->ns), "2025-08-04 13:47:38");
  EXPECT_EQ(format_stamp(reader.anywhere("*** JOB 1 ON n CANCELLED AT 2025-08-04T15:47:39 DUE TO TIME LIMIT")->ns),
            "2025-08-04 15:47:39");
  EXPECT_FALSE(reader.anywhere("results/20250822_1647/run.log of Monday, no time here"));
}

TEST(Numbers, GroupsSignsAndExponents) {
  const auto number = [](std::string_view text) { return detail::whole_number(text); };
  EXPECT_EQ(number("1,234,567"), 1234567);
  EXPECT_EQ(number("3.5e-4"), 3.5e-4);
  EXPECT_EQ(number("-2"), -2);
  EXPECT_EQ(number("+2"), 2);
  for (const char* text : {"", "nan", "inf", "1,23", "1e999", "-", "+-1", "0x10", "1,2345"}) {
    EXPECT_FALSE(number(text)) << text;
  }
}

}  // namespace
}  // namespace unidle::logs
