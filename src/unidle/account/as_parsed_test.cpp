#include "unidle/account/as_parsed.h"

#include <gmock/gmock.h>

namespace unidle::account {
namespace {

using nlohmann::json;
using record::Setting;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

json argument(const std::string& name, const json& value, bool changed = false) {
  return {{"names", {name, name.substr(0, 1)}}, {"option", "--" + name}, {"value", value}, {"changed", changed}};
}

record::Note parsed(const std::vector<json>& arguments, std::int64_t process = 1, std::int64_t t_ns = 1) {
  return {t_ns, process, {{"type", "arguments"}, {"program", "train.py"}, {"arguments", arguments}}};
}

std::vector<std::string> configured(std::vector<Setting> settings, const std::vector<record::Note>& notes) {
  settings.push_back({"batch.size", "16", "effective", ""});
  std::vector<std::string> found;
  for (const Setting& setting : as_parsed(settings, notes)) {
    EXPECT_NE(setting.source, "argument");
    if (setting.source != "effective") {
      found.push_back(setting.knob + "=" + setting.value + " " + setting.location);
    }
  }
  return found;
}

std::vector<Setting> batch(const std::string& value, const std::string& value_origin) {
  return {{"batch.size", value, "configured", "train.py:3"}, {"batch.size", value_origin, "argument", "batch_size"}};
}

TEST(AsParsed, ADefaultThatTheCommandOverridesIsNoConfiguredValue) {
  EXPECT_THAT(configured(batch("128", "default"), {parsed({argument("batch_size", "16")})}),
              ElementsAre("batch.size=16 --batch_size"));
  EXPECT_THAT(configured(batch("128", "default"), {parsed({argument("batch_size", "128")})}),
              ElementsAre("batch.size=128 train.py:3"));
}

TEST(AsParsed, WithoutANoteAWordStandsAndSoDoesADefault) {
  EXPECT_THAT(configured(batch("128", "default"), {}), ElementsAre("batch.size=128 train.py:3"));
  EXPECT_THAT(configured(batch("128", "word"), {parsed({argument("lr", "0.1")})}),
              ElementsAre("batch.size=128 train.py:3"));
  EXPECT_THAT(configured(batch("128", "default"), {parsed({argument("lr", "0.1")})}), IsEmpty())
      << "another parser was asked";
}

TEST(AsParsed, WhatCannotBeToldIsLeftOut) {
  EXPECT_THAT(configured(batch("128", "word"), {parsed({argument("batch_size", "128", true)})}), IsEmpty())
      << "changed afterwards";
  EXPECT_THAT(configured(batch("128", "default"), {parsed({argument("batch_size", nullptr)})}), IsEmpty());
  EXPECT_THAT(configured(batch("128", "file"), {parsed({argument("batch_size", "64")})}), IsEmpty());
  EXPECT_THAT(configured(batch("128", "file"), {parsed({argument("batch_size", "128")})}),
              ElementsAre("batch.size=128 train.py:3"));
  EXPECT_THAT(configured(batch("128", "file"), {}), ElementsAre("batch.size=128 train.py:3"));
  EXPECT_THAT(configured(batch("128", "default"),
                         {parsed({argument("batch_size", "16")}), parsed({argument("batch_size", "8")}, 2)}),
              IsEmpty())
      << "two processes parsed different values";
  EXPECT_THAT(configured({{"precision.amp", "fp16", "configured", "a"}, {"precision.amp", "default", "argument", "p"}},
                         {parsed({argument("p", "16-mixed")})}),
              IsEmpty());
}

TEST(AsParsed, AFormatIsSaidInTheKnobsWords) {
  const std::vector<Setting> settings = {{"precision.amp", "off", "configured", "train.py:3"},
                                         {"precision.amp", "default", "argument", "dtype"}};
  for (const auto& [typed, value] : {std::pair{"bfloat16", "bf16"}, {"torch.float16", "fp16"}, {"half", "fp16"}}) {
    EXPECT_THAT(configured(settings, {parsed({argument("dtype", typed)})}),
                ElementsAre("precision.amp=" + std::string(value) + " --dtype"));
  }
  EXPECT_THAT(configured(settings, {parsed({argument("dtype", "float32")})}),
              ElementsAre("precision.amp=off train.py:3"));
  EXPECT_THAT(configured(settings, {parsed({argument("dtype", "float64")})}), IsEmpty());
}

TEST(AsParsed, TheNewestNoteOfAProcessCounts) {
  EXPECT_THAT(configured(batch("128", "default"), {parsed({argument("batch_size", "16", true)}, 1, 9),
                                                   parsed({argument("batch_size", "16")}, 1, 3)}),
              IsEmpty());
}

TEST(AsParsed, DamagedNotesSayNothing) {
  for (const json& arguments : {json(3), json("x"), json::array({1, "a", json::object()}),
                                json::array({{{"names", 3}}, {{"names", {1, 2}}, {"value", json::array()}}})}) {
    EXPECT_THAT(configured(batch("128", "word"), {{1, 1, {{"type", "arguments"}, {"arguments", arguments}}}}),
                ElementsAre("batch.size=128 train.py:3"));
  }
}

}  // namespace
}  // namespace unidle::account
