#include "unidle/knobs/comments.h"

#include <gtest/gtest.h>

namespace unidle::knobs {
namespace {

std::string comment(const std::string& text, const std::string& path, const std::string& name = "c.yaml") {
  const ConfigFile file = ConfigFile::from_text(text, name);
  return comment_of(file, *file.find(path));
}

TEST(Comments, StandBehindAndAbove) {
  EXPECT_EQ(comment("a: 1  # one\nb: 2\n", "a"), "one");
  EXPECT_EQ(comment("# first\n# second\na: 1 # third\n", "a"), "first second third");
  EXPECT_EQ(comment("# of the file\n\na: 1\n", "a"), "") << "a blank line parts them";
  EXPECT_EQ(comment("g:\n# of the group\n  a: 1\n", "g.a"), "") << "another indentation";
  EXPECT_EQ(comment("a: 1 # one\nb: 2\n", "b"), "") << "that is a's";
  EXPECT_EQ(comment("a: 'x # y'  # one\n", "a"), "one");
  EXPECT_EQ(comment("{a: 1, b: \"x # y\"}  # both\n", "a"), "both");
  EXPECT_EQ(comment("a: x#y\n", "a"), "");
  EXPECT_EQ(comment("a = 1  # one\n", "a", "c.toml"), "one");
  EXPECT_EQ(comment("a = 1,  # one\n", "a", "c.py"), "one");
  EXPECT_EQ(comment("{\n  // first\n  \"a\": 1, /* one */\n  \"b\": \"http://x\"\n}\n", "a", "c.json"), "first one");
  EXPECT_EQ(comment("{\n  \"b\": \"http://x\"\n}\n", "b", "c.json"), "");
}

TEST(Comments, ReasonsAreToldFromDescriptions) {
  for (const char* reason :
       {"only works with 32-bit precision", "debuggers don't like multiprocessing", "debuggers do not like workers",
        "2 on linux but 0 works on windows", "this works for 2 GPUs with 11GB", "causes instability on AMD GPUs",
        "must be 1 when using context parallel", "OOM with more", "fp16 gives NaNs", "Do not change",
        "keep at 0: the dataset opens an HDF5 file", "hangs with workers", "not supported by this model",
        "num_workers=0 is safest for streaming", "small, /dev/shm is limited here", "\u4e0d\u8981\u6539"}) {
    EXPECT_TRUE(gives_reason(reason)) << reason;
  }
  for (const char* description :
       {"", "number of workers", "bf16, fp16 or fp32", "Use to increase effective batch size", "Logging every N steps",
        "torch.compile the model + loss, True increases speed + decreases memory", "per GPU", "Test batch size"}) {
    EXPECT_FALSE(gives_reason(description)) << description;
  }
  EXPECT_TRUE(gives_reason("use 1 for layerwise galore", "1"));
  EXPECT_FALSE(gives_reason("use 16 for large models", "1"));
}

TEST(Comments, ADecisionIsOfOneKnob) {
  const ConfigFile file = ConfigFile::from_text(
      "train:\n  num_workers: 0  # debuggers do not like workers\n  pin_memory: false\n", "c.yaml");
  const Recognition recognition = recognize(file);
  const auto decision = decision_on(file, recognition, "loader.workers");
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->path, "train.num_workers");
  EXPECT_EQ(decision->line, 2);
  EXPECT_EQ(decision->comment, "debuggers do not like workers");
  EXPECT_FALSE(decision_on(file, recognition, "loader.pin_memory"));
}

}  // namespace
}  // namespace unidle::knobs
