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
