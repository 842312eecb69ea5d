#include "unidle/tune/trials/applied.h"

#include <gtest/gtest.h>

#include "unidle/base/files.h"
#include "unidle/tune/trials/trial_record.h"

namespace unidle::tune {
namespace {

using Notes = std::vector<nlohmann::json>;

class AppliedTest : public ::testing::Test {
 protected:
  record::Reader record_of(const Notes& notes, const nlohmann::json& exit = {{"code", 0}}) {
    const auto path = folder_.path() / std::to_string(records_++);
    record::Writer writer(path);
    for (const nlohmann::json& note : notes) {
      writer.add(record::Note{1, 1, note});
    }
    writer.set_meta(record::meta::kExit, exit);
    writer.flush();
    return record::Reader(path);
  }

  static nlohmann::json said(const std::string& status, const nlohmann::json& why = nullptr) {
    return {{"type", "apply"}, {"knob", "loader.workers"}, {"status", status}, {"why", why}};
  }

  Applied applied(const Notes& notes) {
    return applied_settings(record_of(notes), {{"loader.workers", 2}}).at("loader.workers");
  }

 private:
  TemporaryFolder folder_;
  int records_ = 0;
};

TEST_F(AppliedTest, TheWorstOfSeveralProcessesCounts) {
  EXPECT_TRUE(applied({said("taken")}).taken);
  EXPECT_TRUE(applied({said("taken"), said("taken")}).taken);
  EXPECT_FALSE(applied({said("taken"), said("refused", "given by position")}).taken);
  EXPECT_EQ(applied({said("refused", "given by position"), said("taken")}).why, "given by position");
  EXPECT_EQ(applied({said("ignored")}).why, "the program has another value");
}

TEST_F(AppliedTest, OfSeveralDatasetsOneIsEnough) {
  EXPECT_TRUE(applied({said("refused-in-part", "is random"), said("taken")}).taken);
  EXPECT_EQ(applied({said("refused-in-part", "is random"), said("taken")}).why, "is random");
  EXPECT_EQ(applied({said("refused-in-part", "is random")}).why, "is random");
}

TEST_F(AppliedTest, NotesMayHoldAnything) {
  const Notes odd = {5,
                     nlohmann::json::array(),
                     {{"type", 7}},
                     {{"type", "shapes"}, {"distinct", "many"}},
                     {{"type", "longest"}, {"longest", {1}}, {"batch", nullptr}}};
  const account::RunData run = account::load_run(record_of(odd));
  EXPECT_FALSE(lengths_vary(run));
  EXPECT_EQ(longest_in(run), "");
  EXPECT_TRUE(lengths_vary(account::load_run(record_of({{{"type", "shapes"}, {"distinct", 3}}}))));
}

TEST_F(AppliedTest, WhatNobodySpokeOfWasNotReadBack) {
  EXPECT_EQ(applied({}).why, "the program ended before it could be read back");
  EXPECT_FALSE(applied({{{"type", "apply"}, {"knob", 7}, {"status", "taken"}}, {{"type", "loader"}}}).taken);
  EXPECT_TRUE(applied_settings(record_of({said("taken")}), {}).empty());
}

TEST_F(AppliedTest, ASettingThatMayHaveEndedTheProgramIsSuspected) {
  const auto why = [this](const nlohmann::json& exit) {
    return applied_settings(record_of({}, exit), {{"loader.workers", 2}}).at("loader.workers").why;
  };
  EXPECT_EQ(why({{"code", 1}}),
            "the program failed before it could be read back; without this setting it may not fail");
  for (const nlohmann::json& exit : {nlohmann::json{{"code", 0}}, {{"signal", 2}}, nlohmann::json(), {{"code", "x"}}}) {
    EXPECT_EQ(why(exit), "the program ended before it could be read back") << exit;
  }
}

}  // namespace
}  // namespace unidle::tune
