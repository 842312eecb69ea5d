#include "unidle/knobs/knob.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "unidle/base/testing/generated_docs.h"
#include "unidle/knobs/reference.h"
#include "unidle/knobs/same_value.h"

namespace unidle::knobs {
namespace {

std::optional<Value> parsed(const char* knob, const char* text) { return parse_value(*find_knob(knob), text); }

TEST(Value, NumbersAreNumbersInEveryFormat) {
  EXPECT_EQ(Value(4e-05).to_text(), "4.0e-05") << "YAML 1.1 takes 4e-05 for a string";
  EXPECT_EQ(Value(2.5e-05).to_text(), "2.5e-05");
  EXPECT_EQ(Value(0.001).to_text(), "0.001");
  EXPECT_EQ(Value(8).to_text(), "8");
  EXPECT_EQ(Value("one").to_text(), "one");
}

TEST(Knob, AllNamesOfTheManualAreThere) {
  const std::set<std::string> expected = {"loader.workers",
                                          "loader.pin_memory",
                                          "loader.prefetch_factor",
                                          "loader.persistent_workers",
                                          "transfer.non_blocking",
                                          "batch.size",
                                          "batch.accumulation",
                                          "precision.amp",
                                          "precision.tf32",
                                          "compile.mode",
                                          "layout.channels_last",
                                          "cudnn.benchmark",
                                          "optimizer.fused",
                                          "optimizer.zero_to_none",
                                          "optimizer.lr",
                                          "optimizer.warmup_steps",
                                          "grad.clip_norm",
                                          "grad.checkpointing",
                                          "metrics.interval",
                                          "cache.features",
                                          "data.on_device",
                                          "cpu.threads",
                                          "model.width",
                                          "model.depth",
                                          "input.size",
                                          "validation.interval",
                                          "validation.every",
                                          "loader.gather",
                                          "memory.keep_freed",
                                          "batch.trim_padding"};
  std::set<std::string> names;
  for (const Knob* knob : all_catalogue()) {
    EXPECT_TRUE(names.insert(knob->name).second) << knob->name;
    EXPECT_FALSE(knob->explanation.empty()) << knob->name;
    EXPECT_EQ(find_knob(knob->name), knob);
    if (knob->fallback) {
      EXPECT_TRUE(takes(*knob, *knob->fallback)) << knob->name;
      EXPECT_EQ(parse_value(*knob, knob->fallback->to_text()), knob->fallback) << knob->name;
    }
  }
  EXPECT_TRUE(std::includes(names.begin(), names.end(), expected.begin(), expected.end()));
  EXPECT_EQ(find_knob("loader.worker"), nullptr);
}

TEST(Knob, ReadsBooleansInEverySpelling) {
  for (const char* text : {"true", "True", "yes", "on", "1", "TRUE"}) {
    EXPECT_EQ(parsed("optimizer.fused", text), true) << text;
  }
  for (const char* text : {"false", "False", "no", "off", "0"}) {
    EXPECT_EQ(parsed("optimizer.fused", text), false) << text;
  }
  EXPECT_EQ(parsed("optimizer.fused", "maybe"), std::nullopt);
  EXPECT_EQ(parsed("optimizer.fused", ""), std::nullopt);
}

TEST(Knob, TrueIsNoPrecision) {
  EXPECT_EQ(parsed("precision.amp", "true"), std::nullopt);
  EXPECT_EQ(parsed("precision.amp", "BF16"), "bf16");
  EXPECT_EQ(parsed("precision.amp", "False"), "off");
  EXPECT_EQ(parsed("cache.features", "true"), "memory");
}

TEST(Knob, OnePrecisionHasSeveralNames) {
  EXPECT_EQ(plain_value("torch.bfloat16"), "bf16");
  EXPECT_EQ(plain_value("float16"), "fp16");
  EXPECT_TRUE(same_value("'half'", "fp16"));
}

TEST(Value, AValueThatOnlyBeginsLikeTheOtherIsNotInEffect) {
  EXPECT_TRUE(in_effect("device", "cuda", "cuda:0"));
  EXPECT_FALSE(in_effect("loader.workers", "2", "20"));
  EXPECT_FALSE(in_effect("precision.amp", "fp16", "fp16-mixed"));
}

TEST(Knob, ReadsNumbers) {
  EXPECT_EQ(parsed("loader.workers", "08"), 8);
  EXPECT_EQ(parsed("loader.workers", "-1"), std::nullopt);
  EXPECT_EQ(parsed("loader.workers", "2.5"), std::nullopt);
  EXPECT_EQ(parsed("loader.workers", "99999999999999999999"), std::nullopt);
  EXPECT_EQ(parsed("optimizer.lr", "2e-4"), 0.0002);
  EXPECT_EQ(parsed("optimizer.lr", "0.00020"), 0.0002);
  EXPECT_EQ(parsed("optimizer.lr", "nan"), std::nullopt);
  EXPECT_EQ(parsed("optimizer.lr", "1e-4x"), std::nullopt);
}

TEST(Knob, KnowsWhatARunningProgramCanBeGivenAndWhereItMatters) {
  EXPECT_TRUE(applies_at_run_time("loader.workers", 2));
  EXPECT_TRUE(applies_at_run_time("precision.amp", "bf16"));
  EXPECT_TRUE(applies_at_run_time("precision.amp", "fp16"));
  EXPECT_FALSE(applies_at_run_time("compile.mode", "graph"));
  EXPECT_FALSE(applies_at_run_time("compile.mode", "fused"));
  EXPECT_FALSE(applies_at_run_time("batch.size", 8));
  EXPECT_FALSE(matters_on("cpu", "loader.pin_memory"));
  EXPECT_TRUE(matters_on("cuda", "loader.pin_memory"));
  EXPECT_FALSE(matters_on("cpu", "metrics.interval"));
  EXPECT_TRUE(matters_on("cpu", "loader.workers"));
}

TEST(Reference, DocsAreUpToDate) {
  unidle::testing::expect_generated(UNIDLE_SOURCE_DIR "/docs/knobs.md", reference_markdown());
}

}  // namespace
}  // namespace unidle::knobs
