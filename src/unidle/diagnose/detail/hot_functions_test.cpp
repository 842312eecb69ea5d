#include "unidle/diagnose/detail/hot_functions.h"

#include <gtest/gtest.h>

namespace unidle::diagnose::testing {
namespace {

bool all(const HotLine& /*line*/) { return true; }

// Ten workers, one after the other, are ten processes: together they show the line.
TEST(HotFunctions, ALineIsThatOfAllProcesses) {
  Signals signals;
  for (int worker = 0; worker < 10; ++worker) {
    signals.hot.push_back({"worker", "input", "data.py:20", "read", 8, 10});
  }
  signals.hot.push_back({"worker", "input", "data.py:18", "read", 9, 10});
  const auto hot = detail::hot_function(signals, all);
  ASSERT_TRUE(hot);
  EXPECT_EQ(hot->where, "data.py:20");
  EXPECT_NEAR(hot->of_line, 80.0 / 89, 1e-9);
  EXPECT_EQ(hot->text(), "read (data.py:20)") << "nearly all of it is that line";
}

TEST(HotFunctions, TheCallerIsTheOneWithMostOfTheLine) {
  Signals signals;
  signals.hot = {{"train", "startup", "data.py:3", "load", 4, 20, "test (main.py:9)"},
                 {"train", "startup", "data.py:3", "load", 9, 20, "main (main.py:5)"},
                 {"train", "startup", "data.py:7", "load", 7, 20, "main (main.py:6)"}};
  const auto hot = detail::hot_function(signals, all);
  ASSERT_TRUE(hot);
  EXPECT_EQ(hot->caller, "main (main.py:5)");
  EXPECT_NEAR(hot->of_line, 13.0 / 20, 1e-9);
}

}  // namespace
}  // namespace unidle::diagnose::testing
