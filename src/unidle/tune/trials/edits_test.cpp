#include "unidle/tune/trials/edits.h"

#include <gmock/gmock.h>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/testing/thrown.h"

namespace unidle::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using unidle::testing::thrown_by;

Edit edit(int line, const std::string& before, const std::string& after, knobs::Value to = 4) {
  return {std::move(to), after, "a.py", {{line, {before}, {after}}}};
}

TEST(Edits, OnlyThoseOfTheValue) {
  const Edits edits = {{"validation.every", edit(2, "b", "B")}};
  const knobs::Settings changes = {{"validation.every", 4}, {"loader.workers", 2}};
  EXPECT_EQ(edited_part(edits, changes), (knobs::Settings{{"validation.every", 4}}));
  EXPECT_EQ(unedited_part(edits, changes), (knobs::Settings{{"loader.workers", 2}}));
  EXPECT_TRUE(edited_part(edits, {{"validation.every", 3}}).empty());
}

TEST(Edits, SeveralInOneFile) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "a.py", "a\nb\nc\n");
  Edits edits = {{"validation.every", edit(1, "a", "A")}, {"loader.replace", edit(3, "c", "C", true)}};
  edits.at("validation.every").lines[0].after = {"A", "AA"};
  const auto files = edited_files(edits, {{"validation.every", 4}, {"loader.replace", true}}, folder.path());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].file, "a.py");
  EXPECT_EQ(files[0].text, "A\nAA\nb\nC\n");
  EXPECT_TRUE(edited_files(edits, {{"loader.workers", 2}}, folder.path()).empty());
}

TEST(Edits, NoneWhereTheProgramIsAnotherByNow) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "a.py", "a\nb\n");
  const Edits edits = {{"validation.every", edit(2, "old", "new")}};
  const auto failure = thrown_by([&] { edited_files(edits, {{"validation.every", 4}}, folder.path()); });
  EXPECT_EQ(failure->code(), ErrorCode::kInput);
  EXPECT_THAT(failure->what(), HasSubstr("a.py:2: has other lines"));
}

TEST(Edits, NoLinesAreChangedTwice) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "a.py", "a\n");
  const Edits edits = {{"validation.every", edit(1, "a", "A")}, {"loader.replace", edit(1, "a", "B", true)}};
  EXPECT_THAT(thrown_by([&] {
                edited_files(edits, {{"validation.every", 4}, {"loader.replace", true}}, folder.path());
              })->what(),
              HasSubstr("changed twice"));
}

/// A diagnosis whose fix shows the lines that it changes.
diagnose::Diagnosis shown(const std::string& knob, knobs::Value to, const std::string& where, bool by_hand) {
  diagnose::Diagnosis diagnosis;
  diagnosis.findings.resize(1);
  knobs::Change fix = knobs::change_of(knob, {}, std::move(to), "");
  fix.by_hand = by_hand;
  fix.in_program = knobs::InProgram{.words = "x", .where = where, .before = {"a"}, .after = {"b"}};
  diagnosis.findings[0].fixes = {fix};
  return diagnosis;
}

TEST(Edits, ForWhatNothingElseChanges) {
  const knobs::ProgramCommand program{{"python", "train.py"}};
  EXPECT_TRUE(edits_of(shown("validation.every", 4, "train.py:3", true), program).contains("validation.every"));
  EXPECT_TRUE(
      edits_of(shown("validation.interval", 4.0, "train.py:3", false), program).contains("validation.interval"));
  EXPECT_TRUE(edits_of(shown("loader.workers", 4, "train.py:3", false), program).empty())
      << "can be changed at run time";
  EXPECT_TRUE(edits_of(shown("validation.every", 4, "/usr/lib/x.py:3", true), program).empty()) << "not the program's";
  EXPECT_TRUE(edits_of(shown("validation.every", 4, "../x.py:3", true), program).empty());
}

TEST(Edits, AWordOfTheCommand) {
  diagnose::Diagnosis diagnosis = shown("validation.every", 4, "", true);
  diagnosis.findings[0].fixes[0].in_program =
      knobs::InProgram{.words = "--eval-steps 40", .word = knobs::ChangedWord{3, "10", "40"}};
  const std::vector<std::string> command = {"python", "train.py", "--eval-steps", "10"};
  const Edits edits = edits_of(diagnosis, {command});
  ASSERT_TRUE(edits.contains("validation.every"));
  EXPECT_THAT(edited_command(edits, {{"validation.every", 4}}, command),
              ElementsAre("python", "train.py", "--eval-steps", "40"));
  EXPECT_EQ(edited_command(edits, {{"validation.every", 3}}, command), command);
  EXPECT_TRUE(edited_files(edits, {{"validation.every", 4}}, "/nowhere").empty());
  EXPECT_EQ(without_lines(edits).size(), 1U) << "needs no copy of the files";
  EXPECT_TRUE(edits_of(diagnosis, {{"python", "train.py", "--eval-steps", "20"}}).empty()) << "another command";
}

TEST(Edits, OfAPatch) {
  diagnose::Diagnosis diagnosis = shown("loader.replace", true, "train.py:3", true);
  diagnosis.findings[0].fixes[0].patch = "--- code/a.py\n+++ code/a.py\n@@ -1 +1 @@\n-a\n+A\n@@ -7 +7,2 @@\n b\n+c\n";
  const Edits edits = edits_of(diagnosis, {{"python", "code/a.py"}});
  ASSERT_TRUE(edits.contains("loader.replace"));
  EXPECT_EQ(edits.at("loader.replace").where(), "code/a.py:1");
  EXPECT_EQ(edits.at("loader.replace").lines.size(), 2U);
  EXPECT_EQ(edits.at("loader.replace").words, "c");
  EXPECT_FALSE(needs_package(edits.at("loader.replace")));
  EXPECT_TRUE(needs_package({true, "", "a.py", {{1, {"a"}, {"import unidle.data", "a"}}}}));
  EXPECT_FALSE(needs_package({true, "", "a.py", {{1, {"import unidle", "a"}, {"import unidle", "b"}}}}));
}

}  // namespace
}  // namespace unidle::tune
