#include "unidle/report/page/hot_lines.h"

#include <gmock/gmock.h>

namespace unidle::report {
namespace {

void add(account::RunData& run, const char* role, const char* phase, const char* where, int hits, int total,
         std::int64_t process = 1) {
  run.notes.push_back({static_cast<std::int64_t>(run.notes.size()),
                       process,
                       {{"type", "hot"},
                        {"role", role},
                        {"phase", phase},
                        {"where", where},
                        {"function", "f"},
                        {"caller", nullptr},
                        {"hits", hits},
                        {"total", total}}});
}

TEST(HotWorks, TheNewestNoteOfALineCounts) {
  account::RunData run;
  add(run, "train", "input", "train.py:7", 3, 10);
  add(run, "train", "input", "train.py:7", 30, 40);
  add(run, "train", "input", "train.py:9", 4, 40);
  const auto works = hot_works(run);
  ASSERT_EQ(works.size(), 1U);
  EXPECT_EQ(works[0].work, Work::kInput);
  EXPECT_EQ(works[0].looks, 40);
  ASSERT_EQ(works[0].lines.size(), 2U);
  EXPECT_EQ(works[0].lines[0].where, "train.py:7");
  EXPECT_DOUBLE_EQ(works[0].lines[0].share, 0.75);
}

TEST(HotWorks, WorkersAreCountedTogetherAndPhasesOfTheStepToo) {
  account::RunData run;
  add(run, "worker", "input", "data.py:1", 6, 10, 11);
  add(run, "worker", "input", "data.py:1", 8, 10, 12);
  add(run, "train", "train", "model.py:1", 5, 10);
  add(run, "train", "between", "train.py:3", 5, 10);
  const auto works = hot_works(run);
  ASSERT_EQ(works.size(), 2U);
  EXPECT_EQ(works[0].work, Work::kLoaderWorker);
  EXPECT_DOUBLE_EQ(works[0].lines[0].share, 0.7);
  EXPECT_EQ(works[1].work, Work::kStep);
  EXPECT_EQ(works[1].looks, 20);
}

TEST(HotWorks, LinesOfASamplerAreOfTheWaitForInput) {
  account::RunData run;
  add(run, "train", "input", "data.py:9", 4, 40);
  add(run, "train", "indices", "sampler.py:7", 30, 40);
  const auto works = hot_works(run);
  ASSERT_EQ(works.size(), 1U);
  EXPECT_EQ(works[0].work, Work::kInput);
  EXPECT_EQ(works[0].looks, 40);
  EXPECT_DOUBLE_EQ(works[0].lines[0].share, 0.75);
}

TEST(HotWorks, AHandfulOfLooksIsNotShown) {
  account::RunData run;
  add(run, "train", "input", "train.py:7", 2, 2);
  EXPECT_TRUE(hot_lines_html(run, {}).empty());
  add(run, "train", "train", "train.py:9", 20, 20);
  const std::string html = hot_lines_html(run, {}).markup;
  EXPECT_THAT(html, ::testing::HasSubstr("train.py:9"));
  EXPECT_THAT(html, ::testing::Not(::testing::HasSubstr("train.py:7")));
}

TEST(HotWorks, DamagedNotesAreNoLines) {
  account::RunData run;
  add(run, "train", "input", "a.py:1", -4, 10);
  add(run, "train", "input", "a.py:2", 0, 10);
  run.notes.push_back({1, 1, {{"type", "hot"}, {"hits", "many"}}});
  run.notes.push_back({1, 1, 5});
  EXPECT_TRUE(hot_works(run).empty());
  EXPECT_TRUE(hot_lines_html(run, {}).empty());
}

}  // namespace
}  // namespace unidle::report
