#include "unidle/tune/advice/suggestions.h"

#include <gtest/gtest.h>

namespace unidle::tune {
namespace {

diagnose::Finding finding(std::string id, std::vector<knobs::Change> fixes) {
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
                      {"loader.workers", 0, std::nullopt, knobs::KnobClass::kExact, "find out"},
                      {"precision.amp", "off", "int3", knobs::KnobClass::kNumeric, "?"}}),
      finding("batch-too-small", {{"batch.size", 2, 4, knobs::KnobClass::kNumeric, "larger"},
                                  {"batch.accumulation", 8, 4, knobs::KnobClass::kNumeric, "fewer"}}),
      finding("semantic", {{"batch.size", 2, 64, knobs::KnobClass::kSemantic, "larger still"}})};
  const std::vector<Proposal> found = suggestions_of(diagnosis, false);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].changes, (knobs::Settings{{"loader.workers", 2}}));
  EXPECT_EQ(found[1].changes, (knobs::Settings{{"cache.features", "memory"}}));
  EXPECT_EQ(found[2].changes, (knobs::Settings{{"batch.accumulation", 4}, {"batch.size", 4}}));
  EXPECT_EQ(found[0].promise, kMeasuredFirst + 0.4);
  EXPECT_EQ(found[0].reason, "loader-no-workers: start workers");
  EXPECT_EQ(found[2].reason, "batch-too-small: larger");
  EXPECT_EQ(suggestions_of(diagnosis, true).size(), 4u);
}

TEST(Suggestions, HintsAreKeptApartAndMeasuredOneByOne) {
  diagnose::Diagnosis diagnosis;
  diagnosis.findings = {finding("hint", {{"loader.workers", 0, 2, knobs::KnobClass::kExact, "maybe"}}),
                        finding("warning", {{"optimizer.fused", false, true, knobs::KnobClass::kNumeric, "surely"}})};
  diagnosis.findings[0].severity = diagnose::Severity::kInfo;
  const std::vector<Proposal> suggestions = suggestions_of(diagnosis, true);
  const std::vector<Proposal> hints = hints_of(diagnosis, true);
  ASSERT_EQ(suggestions.size(), 1u);
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_EQ(suggestions[0].reason, "warning: surely");
  EXPECT_TRUE(suggestions[0].safe);
  EXPECT_EQ(hints[0].reason, "hint: maybe");
  EXPECT_FALSE(hints[0].safe);
}

TEST(Suggestions, ValidationThatTakesAFifthIsMadeRarer) {
  diagnose::Diagnosis diagnosis;
  diagnosis.time = {.startup = 1, .train = 25, .validate = 8, .checkpoint = 0, .other = 0};
  EXPECT_EQ(rarer_validation(diagnosis, {{"validation.every", 1}})->changes,
            (knobs::Settings{{"validation.every", 3}}));
  EXPECT_EQ(rarer_validation(diagnosis, {{"validation.every", 2}})->changes,
            (knobs::Settings{{"validation.every", 6}}));
  EXPECT_FALSE(rarer_validation(diagnosis, {}));  // the program does not allow it
  diagnosis.time.validate = 6;
  EXPECT_FALSE(rarer_validation(diagnosis, {{"validation.every", 1}}));
}

}  // namespace
}  // namespace unidle::tune
