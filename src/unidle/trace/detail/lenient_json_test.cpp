#include "unidle/trace/detail/lenient_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace unidle::trace::detail {
namespace {

std::string passed_on(std::string_view bytes) {
  logs::Source source("trace.json", bytes);
  LenientJson json(source);
  std::string text;
  for (; !json.at_end(); json.advance()) {
    text += json.current();
  }
  return text;
}

/// The name that is read from an event whose label is `written` in the file.
std::string name_of(const std::string& written) {
  const std::string event = R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": ")" + written +
                            R"(", "pid": 7, "tid": 7,
    "ts": 1.5, "dur": 2, "args": {"External id": 3,"Ev Idx": 1}}, {"name": "next"}]})";
  const auto document = nlohmann::json::parse(passed_on(event));
  EXPECT_EQ(document.at("traceEvents").size(), 2U) << written;
  EXPECT_EQ(document["traceEvents"][0].at("pid"), 7) << written;
  EXPECT_EQ(document["traceEvents"][0].at("args").at("Ev Idx"), 1) << written;
  return document["traceEvents"][0].at("name");
}

TEST(LenientJson, LabelsAsTheyAre) {
  EXPECT_EQ(name_of(R"(block "encoder")"), R"(block "encoder")");
  EXPECT_EQ(name_of(R"("all of it")"), R"("all of it")");
  EXPECT_EQ(name_of(R"(a "b", "c" d)"), R"(a "b", "c" d)");
  EXPECT_EQ(name_of(R"({"layer": "conv", "index": 3})"), R"({"layer": "conv", "index": 3})");
  EXPECT_EQ(name_of(R"(["a", "b"])"), R"(["a", "b"])");
  EXPECT_EQ(name_of(R"(C:\Users\me\code.py)"), R"(C:\Users\me\code.py)");
  EXPECT_EQ(name_of("C:\\data\\"), "C:\\data\\");
  EXPECT_EQ(name_of("one\ntwo\tthree\x01"), "one two three ");
  EXPECT_EQ(name_of("op \xff\xfe"), "op \xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(name_of(R"(half \ud83d of a pair)"), "half \xef\xbf\xbd of a pair");
  EXPECT_EQ(name_of(R"(\u12 \x)"), R"(\u12 \x)");
  EXPECT_EQ(name_of(""), "");
}

TEST(LenientJson, NumbersThatJsonDoesNotHave) {
  const auto json = nlohmann::json::parse(
      passed_on(R"({"a": NaN, "b": [Infinity, -Infinity,nan, -nan,inf], "c": null, "d": "NaN", "e": -1})"));
  EXPECT_TRUE(json["a"].is_null());
  EXPECT_EQ(json["b"].size(), 5U);
  EXPECT_EQ(json["d"], "NaN");
  EXPECT_EQ(json["e"], -1);
}

TEST(LenientJson, StrictJsonStaysAsItIs) {
  const nlohmann::json odd = {{"\",\"x\":1", {{"key \\ \" }, {", "a\",\"b\":\""}, {"", {"]", "[", "\",", ",\""}}}},
                              {"text", "{\"a\": \"b\", \"c\": \"d\"}"},
                              {"empty", ""},
                              {"array", {"\"", "\\", "\"\"", {{"\\\"", "\\\", \"pid\": 1"}}}},
                              {"more", "\xc3\xa9\xf0\x9f\x98\x80\n\t"}};
  for (const int indent : {-1, 0, 2}) {
    for (const bool ascii : {false, true}) {
      const std::string strict = odd.dump(indent, ' ', ascii);
      EXPECT_EQ(passed_on(strict), strict);
    }
  }
  const std::string large = nlohmann::json(std::vector<nlohmann::json>(4000, odd)).dump();
  EXPECT_EQ(passed_on(large), large);  // longer than a block
}

TEST(LenientJson, WhatIsCutOffStaysCutOff) {
  const std::string whole = R"({"traceEvents": [{"name": "a", "ts": 1}]})";
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_FALSE(nlohmann::json::accept(passed_on(whole.substr(0, size)))) << size;
  }
}

}  // namespace
}  // namespace unidle::trace::detail
