#include <gmock/gmock.h>

#include <algorithm>

#include <nlohmann/json.hpp>
#include <regex>

#include "unidle/tune/output/result.h"
#include "unidle/tune/testing/whole_search.h"

namespace unidle::tune {
namespace {

using testing::FakeRunner;
using ::testing::HasSubstr;
using testing::product;
using testing::WholeSearch;

/// Two English words in a row that are not part of "knob=value".
std::string english_words_in(const std::string& text) {
  static const std::regex kWords("[^\\w.=][a-z]{2,} [a-z]{2,}[^\\w.=]");
  std::smatch found;
  return std::regex_search(text, found, kWords) ? found.str() : "";
}

OptimizeResult result_of(const FakeRunner::Surface& surface, bool of_program) {
  WholeSearch search;
  search.options.of_program = of_program;
  FakeRunner runner(search.clock, surface, 0.004);
  OptimizeResult result;
  result.config = "c.yaml";
  result.outcome = search.tune(runner);
  return result;
}

TrialResult faster_with_workers(const knobs::Settings& changes) {
  return product(changes, {{"loader.workers", {{"2", 1.5}}}, {"precision.amp", {{"bf16", 1.2}}}});
}

TrialResult refused(const knobs::Settings& changes) {
  TrialResult result = faster_with_workers(changes);
  result.effective["layout.channels_last"] = "false";
  return result;
}

TrialResult failed(const knobs::Settings& changes) {
  TrialResult result = faster_with_workers(changes);
  result.ok = changes.empty();
  result.problem = result.ok ? "" : "took longer than 60 s and was ended";
  return result;
}

TrialResult learns_worse(const knobs::Settings& changes) {
  TrialResult result = faster_with_workers(changes);
  result.loss = changes.contains("precision.amp") ? 2 : 1;
  return result;
}

TrialResult no_faster(const knobs::Settings&) { return testing::at_rate(100); }

TEST(Text, WhatASearchSaysIsTranslated) {
  for (const auto surface : {faster_with_workers, refused, failed, learns_worse, no_faster}) {
    for (const bool of_program : {false, true}) {
      const OptimizeResult result = result_of(surface, of_program);
      const std::string chinese = to_text(result, Language::kChinese);
      EXPECT_EQ(english_words_in(chinese), "") << chinese;
      const std::string english = to_text(result);
      EXPECT_THAT(english, HasSubstr(result.outcome->conclusion));
      EXPECT_TRUE(std::all_of(english.begin(), english.end(), [](unsigned char c) { return c < 0x80; })) << english;
      for (const LoggedTrial& trial : result.outcome->trials) {
        EXPECT_EQ(english_words_in(one_line(trial, Language::kChinese)), "");
      }
    }
  }
}

TEST(Text, JsonIsEnglish) {
  const OptimizeResult result = result_of(no_faster, false);
  EXPECT_EQ(to_json(result)["conclusion"], "nothing to gain: no change was faster than the configuration as it is");
}

}  // namespace
}  // namespace unidle::tune
