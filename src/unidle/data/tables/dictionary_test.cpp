#include "unidle/data/tables/dictionary.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace unidle::data::tables {
namespace {

TEST(Dictionary, NumbersTextsAsTheyCome) {
  Dictionary dictionary;
  EXPECT_EQ(dictionary.find("a"), std::nullopt);
  EXPECT_EQ(dictionary.number_of("a"), 0U);
  EXPECT_EQ(dictionary.number_of(""), 1U);
  EXPECT_EQ(dictionary.number_of("a"), 0U);
  EXPECT_EQ(dictionary.find(""), 1U);
  EXPECT_EQ(dictionary.find("b"), std::nullopt);
  EXPECT_EQ(dictionary.size(), 2U);
}

TEST(Dictionary, KeepsNumbersWhileItGrows) {
  constexpr std::uint32_t kTexts = 20000;
  Dictionary dictionary;
  for (std::uint32_t i = 0; i < kTexts; ++i) {
    ASSERT_EQ(dictionary.number_of(fmt::format("text {}", i)), i);
  }
  const Dictionary copy = dictionary;
  for (std::uint32_t i = 0; i < kTexts; ++i) {
    ASSERT_EQ(copy.find(fmt::format("text {}", i)), i);
    ASSERT_EQ(copy.texts()[i], fmt::format("text {}", i));
  }
  EXPECT_EQ(copy.find("text 20000"), std::nullopt);
}

}  // namespace
}  // namespace unidle::data::tables
