#include "unidle/logs/detail/numbers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "unidle/logs/detail/progress.h"

namespace unidle::logs::detail {
namespace {

/// The number at the front of `text` and its length in bytes.
std::pair<std::optional<double>, std::size_t> taken(std::string_view text) {
  const std::size_t all = text.size();
  const auto value = take_number(text);
  return {value, all - text.size()};
}

TEST(Numbers, AreThoseOfTheStandardLibraryToTheBit) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const std::string whole = std::to_string(random() >> (random() % 64));
    const std::string part = std::to_string(random() >> (random() % 64));
    const std::string text = random() % 4 == 0 ? whole : whole + "." + part.substr(0, random() % 20);
    const auto [value, size] = taken(text + " it/s");
    ASSERT_EQ(size, text.size()) << text;
    ASSERT_EQ(value, std::strtod(text.c_str(), nullptr)) << text;
  }
}

TEST(Numbers, EveryFormOfThem) {
  struct Case {
    const char* text;
    double value;
    std::size_t size;
  };
  for (const Case& one : {Case{"12", 12, 2}, Case{"5.", 5, 2}, Case{".5x", 0.5, 2}, Case{"-0.25", -0.25, 5},
                          Case{"+3", 3, 2}, Case{"1e-3", 1e-3, 4}, Case{"2E+2,", 200, 4}, Case{"5e", 5, 1},
                          Case{"1,234,567 rows", 1234567, 9}, Case{"1,2", 1, 1}, Case{"12,3456", 12, 2},
                          Case{"0.1234567890123456789", 0.1234567890123456789, 21}, Case{"1.2.3", 1.2, 3}}) {
    const auto [value, size] = taken(one.text);
    EXPECT_EQ(value, one.value) << one.text;
    EXPECT_EQ(size, one.size) << one.text;
  }
  for (const char* text : {"", "x", "nan", "inf", "-", "+-1", ".", "e5"}) {
    EXPECT_EQ(taken(text).first, std::nullopt) << text;
  }
}

TEST(Numbers, FinitenessIsThatOfTheValue) {
  for (const char* text :
       {"loss 0.5", "loss: -1.25e3", "loss=1e999", "loss=nan", "loss: -inf", "loss: Infinity", "loss",
        "loss=", "loss 5.", "loss=.5", "loss=-", "loss=-.", "loss=12345678901234567890123456789012345", "loss 1,234",
        "loss=nano", "loss  - 3", "loss=7e", "loss=1-2"}) {
    const auto value = value_after(text, 4);
    EXPECT_EQ(finite_after(text, 4), value ? std::optional(std::isfinite(*value)) : std::nullopt) << text;
  }
}

TEST(Numbers, ANumberLaterInASentenceIsNoLoss) {
  constexpr std::string_view kLoss = "损失";
  for (const char* text : {"损失: 0.5", "损失值 0.5", "损失（平均值）: 0.5", "损失=0.5"}) {
    EXPECT_EQ(finite_after(text, kLoss.size()), true) << text;
  }
  EXPECT_EQ(finite_after("损失计算中发现 1 个无穷值", kLoss.size()), std::nullopt);
}

}  // namespace
}  // namespace unidle::logs::detail
