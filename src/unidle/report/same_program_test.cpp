#include "unidle/report/same_program.h"

#include <gmock/gmock.h>

#include "unidle/report/comparison.h"
#include "unidle/report/testing/scripted_run.h"

namespace unidle::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A run of a program with these files, which has told of some before it had imported all.
account::RunData run_with_files(const std::string& digest, double compute_ms = 50) {
  testing::Script script;
  script.compute_ms = compute_ms;
  account::RunData run = testing::scripted_run(script);
  run.meta["command"] = {"python", "train.py"};
  run.notes.push_back({1, 1, {{"type", "program"}, {"files", 1}, {"digest", "early"}}});
  run.notes.push_back({2, 1, {{"type", "program"}, {"files", 3}, {"digest", digest}}});
  run.notes.push_back({2, 1, {{"type", "shim"}, {"python", "3.12.1"}, {"torch", "2.11.0"}}});
  return run;
}

TEST(SameProgram, OnlyIfNothingRecordedDiffers) {
  const account::RunData a = run_with_files("abc");
  EXPECT_TRUE(same_program(a, run_with_files("abc", 80))) << "its speed may differ";
  EXPECT_FALSE(same_program(a, run_with_files("def")));
  account::RunData b = a;
  b.meta["command"] = {"python", "train.py", "--batch-size", "8"};
  EXPECT_FALSE(same_program(a, b));
  b = a;
  b.meta["host"] = {{"hostname", "other"}};
  EXPECT_FALSE(same_program(a, b));
  b = a;
  b.notes.back().body["torch"] = "2.10.0";
  EXPECT_FALSE(same_program(a, b));
  b = a;
  b.notes.push_back({3, 1, {{"type", "apply"}, {"knob", "cpu.threads"}, {"asked", 1}, {"status", "taken"}}});
  EXPECT_FALSE(same_program(a, b));
}

TEST(SameProgram, UnknownFilesMayDiffer) {
  account::RunData run = run_with_files("abc");
  std::erase_if(run.notes, [](const record::Note& note) { return note.body["type"] == "program"; });
  EXPECT_FALSE(same_program(run, run));
}

TEST(SameProgram, ItsSpeedIsNoEffectOfAChange) {
  EXPECT_THAT(headline(compare(run_with_files("abc", 80), run_with_files("abc"))),
              HasSubstr("runs of this program differ by as much"));
  EXPECT_THAT(headline(compare(run_with_files("abc"), run_with_files("abc"))), Not(HasSubstr("differ")));
  const Comparison changed = compare(run_with_files("abc", 80), run_with_files("def"));
  EXPECT_THAT(headline(changed), Not(HasSubstr("runs of this program")));
  EXPECT_THAT(changed.notes, ::testing::Contains(HasSubstr("One run each")));
}

}  // namespace
}  // namespace unidle::report
