#include "unidle/report/page/flame_graph.h"

#include <gmock/gmock.h>

namespace unidle::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

void add_stacks_note(account::RunData& run, const char* role, json frames, json stacks, std::int64_t process = 1) {
  run.notes.push_back({static_cast<std::int64_t>(run.notes.size()),
                       process,
                       {{"type", "stacks"}, {"role", role}, {"total", 100}, {"frames", frames}, {"stacks", stacks}}});
}

const json kFrames = json::array({{"main", "train.py:30"}, {"step", "train.py:12"}, {"conv2d", "torch"}});

TEST(FlameGraph, StacksThatBeginAlikeShareTheirNodes) {
  account::RunData run;
  add_stacks_note(run, "train", kFrames,
                  json::parse(R"([["train", 5, [0]], ["train", 60, [0, 1, 2]], ["input", 35, [0, 1]]])"));
  const FlameNode root = flame_of(run, "train");
  EXPECT_EQ(root.looks, 100);
  ASSERT_EQ(root.children.size(), 2U);
  const FlameNode& train = root.children[0];
  EXPECT_EQ(train.function, "train");
  EXPECT_EQ(train.looks, 65);
  ASSERT_EQ(train.children.size(), 1U);
  EXPECT_EQ(train.children[0].where, "train.py:30");
  EXPECT_EQ(train.children[0].looks, 65);
  ASSERT_EQ(train.children[0].children.size(), 1U);
  EXPECT_EQ(train.children[0].children[0].looks, 60) << "the line itself has the other five";
}

TEST(FlameGraph, TheNewestNoteOfEachProcessCounts) {
  account::RunData run;
  add_stacks_note(run, "worker", kFrames, json::parse(R"([["input", 10, [0]]])"), 1);
  add_stacks_note(run, "worker", kFrames, json::parse(R"([["input", 40, [0]]])"), 1);
  add_stacks_note(run, "worker", kFrames, json::parse(R"([["input", 20, [0]]])"), 2);
  EXPECT_EQ(flame_of(run, "worker").looks, 60);
  EXPECT_EQ(flame_of(run, "train").looks, 0);
}

TEST(FlameGraph, IsDrawnWithSharesOfAllSamples) {
  account::RunData run;
  add_stacks_note(run, "train", json::array({{"main", "a<b>.py:3"}, {"rare", "train.py:9"}}),
                  json::parse(R"([["startup", 998, [0]], ["after", 2, [1]]])"));
  const std::string html = flame_graphs_html(run, {}).markup;
  EXPECT_THAT(html, HasSubstr("title=\"main a&lt;b&gt;.py:3: 100 %\""));
  EXPECT_THAT(html, HasSubstr("start-up"));
  EXPECT_THAT(html, Not(HasSubstr("rare"))) << "too little to draw";
}

TEST(FlameGraph, DamagedNotesAreNoStacks) {
  account::RunData run;
  add_stacks_note(run, "train", json::array({"main", {"f"}, 7}),
                  json::parse(R"([["train", -1, [0]], ["train", "x", [0]], 3, []])"));
  add_stacks_note(run, "train", 5, json::parse(R"([["train", 30, [0]]])"), 2);
  add_stacks_note(run, "train", kFrames, "none", 3);
  EXPECT_EQ(flame_of(run, "train").looks, 0);
  EXPECT_TRUE(flame_graphs_html(run, {}).empty());
  add_stacks_note(run, "train", kFrames, json::parse(R"([["train", 30, [0, 99, -1, "x"]]])"), 4);
  const FlameNode root = flame_of(run, "train");
  EXPECT_EQ(root.looks, 30);
  ASSERT_EQ(root.children.size(), 1U);
  ASSERT_EQ(root.children[0].children.size(), 1U);
  EXPECT_TRUE(root.children[0].children[0].children.empty()) << "unknown frames are left out";
}

}  // namespace
}  // namespace unidle::report
