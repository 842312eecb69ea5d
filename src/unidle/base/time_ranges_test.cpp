#include "unidle/base/time_ranges.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace unidle {
namespace {

using Bits = std::bitset<64>;

Bits bits(const TimeRanges& ranges) {
  Bits out;
  for (const TimeRange& one : ranges.all()) {
    for (std::int64_t t = one.begin_ns; t < one.end_ns; ++t) {
      out.set(static_cast<std::size_t>(t));
    }
  }
  return out;
}

TEST(TimeRanges, AgreeWithSetsOfNanoseconds) {
  std::mt19937 random(3);
  std::uniform_int_distribution<int> at(0, 63);
  const auto any = [&] {
    std::vector<TimeRange> list;
    for (int i = at(random) % 6; i > 0; --i) {
      list.push_back({at(random), at(random)});
    }
    return TimeRanges(list);
  };
  for (int round = 0; round < 2000; ++round) {
    const TimeRanges a = any();
    const TimeRanges b = any();
    EXPECT_EQ(bits(a.plus(b)), bits(a) | bits(b));
    EXPECT_EQ(bits(a.minus(b)), bits(a) & ~bits(b));
    EXPECT_EQ(a.total_ns(), static_cast<std::int64_t>(bits(a).count()));
    const int from = at(random);
    const int to = at(random);
    EXPECT_EQ(a.overlap_ns(from, to), static_cast<std::int64_t>((bits(a) & bits(TimeRanges({{from, to}}))).count()));
  }
}

}  // namespace
}  // namespace unidle
