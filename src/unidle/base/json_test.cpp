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

TEST(Json, DeepNestingIsRefusedBeforeItTakesTheStack) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_TRUE(parse_json(nested(100)).is_array());
  EXPECT_TRUE(parse_json(nested(1'000'000)).is_discarded());
  EXPECT_TRUE(parse_json(std::string(1'000'000, '{')).is_discarded());
  EXPECT_EQ(parse_json("\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"").is_string(), true)
      << "brackets in a text nest nothing";
  EXPECT_TRUE(parse_json("[1").is_discarded());
  EXPECT_EQ(parse_json(" {\"a\": [1, 2]}"), json({{"a", {1, 2}}}));
}

TEST(Json, ADocumentIsValidWhateverItHoldsAndSteersNoTerminal) {
  const json document = {{"kernel", "a\x1b[2J\u009b2J\u202e\U000e0041 ä"}, {"bytes", "\xff\x9b"}};
  for (const int indent : {-1, 2}) {
    const std::string text = json_text(document, indent);
    EXPECT_THAT(text, ::testing::Not(::testing::AnyOf(
                          ::testing::HasSubstr("\x1b"), ::testing::HasSubstr("\u009b"), ::testing::HasSubstr("\u202e"),
                          ::testing::HasSubstr("\U000e0041"), ::testing::HasSubstr("\xff"))));
    const json read = json::parse(text);
    EXPECT_EQ(read["kernel"], document["kernel"]) << "an escape says the same";
    EXPECT_EQ(read["bytes"], "\uFFFD\uFFFD");
  }
}

}  // namespace
}  // namespace unidle
