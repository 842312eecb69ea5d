#include "unidle/base/json.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace unidle {
namespace {

using nlohmann::json;

TEST(Json, TextIsWhatIsTextAtTheKey) {
  const json object = {{"a", "b"}, {"n", 3}, {"none", nullptr}};
  EXPECT_EQ(text_in(object, "a"), "b");
  EXPECT_EQ(text_in(object, "n"), "");
  EXPECT_EQ(text_in(object, "none"), "");
  EXPECT_EQ(text_in(object, "c"), "");
  EXPECT_EQ(text_in(json::array({"a"}), "a"), "");
  EXPECT_EQ(text_in(json("a"), "a"), "");
}

TEST(Json, NumbersAndTruthsAreThoseAtTheKeyAndNothingElse) {
  const json object = {{"n", 3}, {"x", 2.6}, {"yes", true}, {"text", "3"}, {"huge", 1e300}, {"list", {1}}};
  EXPECT_EQ(number_in(object, "x"), 2.6);
  EXPECT_EQ(whole_in(object, "n"), 3);
  EXPECT_EQ(whole_in(object, "x"), 3);
  EXPECT_EQ(whole_in(object, "huge"), std::nullopt);
  EXPECT_EQ(flag_in(object, "yes"), true);
  for (const char* other : {"yes", "text", "list", "none"}) {
    EXPECT_EQ(number_in(object, other), std::nullopt);
    EXPECT_EQ(whole_in(object, other), std::nullopt);
  }
  EXPECT_EQ(flag_in(object, "n"), std::nullopt);
  EXPECT_EQ(number_in(json::array({1}), "n"), std::nullopt);
  EXPECT_EQ(flag_in(json("yes"), "yes"), std::nullopt);
}

TEST(Json, PlainTextHasNoQuotesAndNeverThrows) {
  EXPECT_EQ(plain_text("off"), "off");
  EXPECT_EQ(plain_text(4), "4");
  EXPECT_EQ(plain_text(true), "true");
  EXPECT_EQ(plain_text(json()), "null");
  EXPECT_EQ(plain_text(json::array({"a", 1})), R"(["a",1])");
  EXPECT_NO_THROW(plain_text(json::array({"\xff"})));
}

}  // namespace
}  // namespace unidle
