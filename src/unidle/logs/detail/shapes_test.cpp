#include "unidle/logs/detail/shapes.h"

#include <gtest/gtest.h>

#include <string>

namespace unidle::logs::detail {
namespace {

/// A shape as text.
std::string told(const Shape& shape) {
  std::string text = shape.bar_at == std::string_view::npos ? "" : "bar@" + std::to_string(shape.bar_at);
  for (const Hit& hit : shape.hits.all()) {
    text += ' ' + std::string(hit.keyword->text) + '@' + std::to_string(hit.begin);
  }
  return text;
}

class ShapesTest : public ::testing::Test {
 protected:
  Matcher matcher_{log_keywords()};
  Shapes shapes_{matcher_};
};

TEST_F(ShapesTest, OtherDigitsHaveTheShapeOfTheFirst) {
  const std::string first = told(shapes_.look("2025-08-22 10:00:00 epoch 3 step 120 loss: 0.5213"));
  const Shape* again = shapes_.known("2025-08-23 11:59:09 epoch 4 step 999 loss: 1.0000");
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(told(*again), first);
  EXPECT_NE(first, "");
}

TEST_F(ShapesTest, AnyOtherSignHasNot) {
  const std::string line = "epoch 3 step 120 loss: 0.5213 and so on, and more";
  shapes_.look(line);
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::string other = line;
    other[i] = '~';
    EXPECT_EQ(shapes_.known(other), nullptr) << other;
    other[i] = line[i] == '7' ? '8' : '7';
    EXPECT_EQ(shapes_.known(other) != nullptr, line[i] >= '0' && line[i] <= '9') << other;
  }
  EXPECT_EQ(shapes_.known(line + "0"), nullptr);
  EXPECT_EQ(shapes_.known(line.substr(1)), nullptr);
}

TEST_F(ShapesTest, AnswersAsTheMatcherDoesForLinesOfEveryLength) {
  for (int round = 0; round < 3; ++round) {
    for (std::size_t size = 0; size < 700; ++size) {
      std::string line(size, static_cast<char>('0' + round));
      line.replace(size / 2, 0, " loss=1 45%|##| epoch ");
      line.resize(size);
      const Shape* known = shapes_.known(line);
      const std::string seen = told(known == nullptr ? shapes_.look(line) : *known);
      Shapes fresh(matcher_);
      EXPECT_EQ(seen, told(fresh.look(line))) << line;
    }
  }
}

TEST_F(ShapesTest, KeepsSeveralOfOneLength) {
  shapes_.look("train: epoch 1, loss 0.5000");
  shapes_.look("valid: epoch 1, loss 0.5000");
  EXPECT_NE(shapes_.known("train: epoch 2, loss 0.4000"), nullptr);
  EXPECT_NE(shapes_.known("valid: epoch 2, loss 0.4000"), nullptr);
}

}  // namespace
}  // namespace unidle::logs::detail
