#include <gmock/gmock.h>

#include "unidle/base/error.h"
#include "unidle/tune/advice/suggestions.h"
#include "unidle/tune/trials/engine_runner.h"
#include "unidle/tune/trials/printed.h"

namespace unidle::tune {
namespace {

using ::testing::HasSubstr;

TEST(Output, ReadsTheSummaryAfterOtherLines) {
  TrialResult result;
  read_summary(
      "starting\n{\"not\": \"this\"}\n"
      R"({"samples_per_s": 50.5, "end_to_end_samples_per_s": 40, "loss_last": 0.25, "metric": {"psnr": 24.5},)"
      R"( "effective": {"loader.workers": 2, "optimizer.fused": true, "precision.amp": "bf16"}})"
      "\nbye\n",
      true, result);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.rate, 40);
  EXPECT_EQ(result.step_rate, 50.5);
  EXPECT_EQ(result.loss, 0.25);
  EXPECT_EQ(result.metrics.at("psnr"), 24.5);
  EXPECT_EQ(result.effective.at("loader.workers"), "2");
  EXPECT_EQ(result.effective.at("optimizer.fused"), "true");
  EXPECT_EQ(result.effective.at("precision.amp"), "bf16");
}

TEST(Output, AMissingSummaryIsAProblemNotAZero) {
  for (const char* text : {"", "no document", "{\"samples_per_s\": 0}", "[1, 2]", "{\"samples_per_s\": \"fast\"}"}) {
    TrialResult result;
    read_summary(text, false, result);
    EXPECT_FALSE(result.ok) << text;
    EXPECT_FALSE(result.problem.empty()) << text;
  }
}

TEST(Output, LastWordsComeFromStandardErrorFirst) {
  EXPECT_EQ(last_words("a\nboom\n\n", "out\n"), "boom");
  EXPECT_EQ(last_words("\n", "out\r\n"), "out");
  EXPECT_FALSE(last_words("", "").empty());
}

TEST(Plan, ShortEpochsAreMeasuredWhole) {
  const TrialPlan plan = plan_trials({.rate = 40, .step_samples = 4, .epoch_samples = 48.0}, 4);
  EXPECT_TRUE(plan.whole_epochs);
  EXPECT_EQ(plan.warmup_samples, 49);  // one epoch and a sample: its validation is left out too
  EXPECT_EQ(plan.samples, 144);
  EXPECT_EQ(plan.samples % 4, 0);
}

TEST(Plan, LongEpochsAreNot) {
  const TrialPlan plan = plan_trials({.rate = 40, .step_samples = 16, .epoch_samples = std::nullopt}, 4);
  EXPECT_FALSE(plan.whole_epochs);
  EXPECT_EQ(plan.samples, 160);
  EXPECT_EQ(plan.warmup_samples, 16);
  const TrialPlan slow = plan_trials({.rate = 0.5, .step_samples = 16, .epoch_samples = 1000.0}, 4);
  EXPECT_FALSE(slow.whole_epochs);
  EXPECT_EQ(slow.samples, 64);
}

diagnose::Finding finding(std::string id, std::vector<diagnose::Fix> fixes) {
  diagnose::Finding result;
  result.id = std::move(id);
  result.severity = diagnose::Severity::kWarning;
  result.share = 0.4;
  result.fixes = std::move(fixes);
  return result;
}

TEST(Suggestions, TakeWhatTheCatalogueKnows) {
  diagnose::Diagnosis diagnosis;
  diagnosis.findings = {
      finding("loader-no-workers", {{"loader.workers", 0, 2, knobs::KnobClass::kExact, "start workers"},
                                    {"cache.features", false, true, knobs::KnobClass::kExact, "keep them"}}),
      finding("odd", {{"no.such.knob", 0, 1, knobs::KnobClass::kExact, "?"},
                      {"loader.workers", 0, nullptr, knobs::KnobClass::kExact, "find out"},
                      {"precision.amp", "off", "int3", knobs::KnobClass::kNumeric, "?"}}),
      finding("batch-too-small", {{"batch.size", 2, 4, knobs::KnobClass::kNumeric, "larger"},
                                  {"batch.accumulation", 8, 4, knobs::KnobClass::kNumeric, "fewer"}}),
      finding("semantic", {{"batch.size", 2, 64, knobs::KnobClass::kSemantic, "larger still"}})};
  const std::vector<Suggestion> found = suggestions_of(diagnosis, false);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].changes, (knobs::Settings{{"loader.workers", "2"}}));
  EXPECT_EQ(found[1].changes, (knobs::Settings{{"cache.features", "memory"}}));
  EXPECT_EQ(found[2].changes, (knobs::Settings{{"batch.accumulation", "4"}, {"batch.size", "4"}}));
  EXPECT_EQ(found[0].share, 0.4);
  EXPECT_EQ(suggestions_of(diagnosis, true).size(), 4u);
}

TEST(Suggestions, InfoIsNoReasonToChangeAnything) {
  diagnose::Diagnosis diagnosis;
  diagnosis.findings = {finding("hint", {{"loader.workers", 0, 2, knobs::KnobClass::kExact, "maybe"}})};
  diagnosis.findings[0].severity = diagnose::Severity::kInfo;
  EXPECT_TRUE(suggestions_of(diagnosis, true).empty());
}

TEST(Suggestions, ValidationThatTakesAFifthIsMadeRarer) {
  diagnose::Diagnosis diagnosis;
  diagnosis.time = {.startup = 1, .train = 25, .validate = 8, .checkpoint = 0, .other = 0};
  EXPECT_EQ(rarer_validation(diagnosis, {{"validation.every", "1"}})->changes,
            (knobs::Settings{{"validation.every", "3"}}));
  EXPECT_EQ(rarer_validation(diagnosis, {{"validation.every", "2"}})->changes,
            (knobs::Settings{{"validation.every", "6"}}));
  EXPECT_FALSE(rarer_validation(diagnosis, {}));  // the program does not let us
  diagnosis.time.validate = 6;
  EXPECT_FALSE(rarer_validation(diagnosis, {{"validation.every", "1"}}));
}

TEST(Settings, AWrongValueNamesFileLineAndKey) {
  try {
    knobs::read_settings(knobs::ConfigFile::from_text("a: 1\nprecision:\n  amp: true\n", "c.yaml"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_EQ(error.subject(), "c.yaml:3: precision.amp");
    EXPECT_THAT(error.message(), HasSubstr("off, fp16, bf16"));
  }
}

}  // namespace
}  // namespace unidle::tune
