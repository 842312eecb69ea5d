// Every timeline is diagnosed as it expects, and so are its near misses.
#include <gtest/gtest.h>

#include <set>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/rule.h"
#include "unidle/diagnose/testing/timeline_case.h"

namespace unidle::diagnose::testing {
namespace {

const std::filesystem::path kFolder = UNIDLE_SOURCE_DIR "/src/unidle/diagnose/testing/timelines";

Diagnosis diagnosis_of(const TimelineCase& timeline, const std::map<std::string, std::string>& replaced) {
  const TemporaryFolder folder;
  write_record(timeline, replaced, folder.path() / "run");
  return diagnose_record(folder.path() / "run");
}

class Timelines : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Timelines, AreDiagnosedAsExpected) {
  const TimelineCase timeline = read_timeline(GetParam());
  for (const std::string& wrong : judge(timeline, diagnosis_of(timeline, {}))) {
    ADD_FAILURE() << wrong;
  }
  for (const Variant& variant : timeline.variants) {
    for (const std::string& wrong : judge(timeline, variant, diagnosis_of(timeline, variant.values))) {
      ADD_FAILURE() << variant.name << ": " << wrong;
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<std::filesystem::path>& timeline) {
  std::string name = timeline.param.stem().string();
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Timelines, ::testing::ValuesIn(timelines_in(kFolder)), name_of);

TEST_P(Timelines, NamesAndOrdersDoNotMatter) {
  const TimelineCase timeline = read_timeline(GetParam());
  const std::string plain = to_json(diagnosis_of(timeline, {})).dump();
  for (const Disguise& disguise :
       {Disguise{4711, 1000000000, false}, Disguise{42, 86400000000000, false}, Disguise{42, 1000000000, true}}) {
    const TemporaryFolder folder;
    write_record(timeline, {}, folder.path() / "other name", disguise);
    EXPECT_EQ(to_json(diagnose_record(folder.path() / "other name")).dump(), plain);
  }
}

TEST(TimelinesAll, EveryRuleHasOneWithANearMiss) {
  std::set<std::string> covered;
  for (const auto& file : timelines_in(kFolder)) {
    const TimelineCase timeline = read_timeline(file);
    const bool near = std::any_of(timeline.variants.begin(), timeline.variants.end(),
                                  [](const Variant& variant) { return !variant.missing; });
    if (near && !timeline.expectations.empty()) {
      covered.insert(timeline.expectations.front().id);
    }
  }
  for (const Rule* rule : all_rules()) {
    EXPECT_TRUE(covered.contains(rule->id)) << rule->id;
  }
}

TEST(TimelinesAll, MistakesNameTheirLine) {
  const TemporaryFolder folder;
  const auto expect_error = [&](const std::string& text, const std::string& subject) {
    const std::filesystem::path file = folder.path() / "a.timeline";
    write_file_atomic(file, text);
    const std::filesystem::path run = folder.path() / std::to_string(std::hash<std::string>{}(text));
    try {
      write_record(read_timeline(file), {}, run);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_EQ(error.subject(), file.string() + subject);
    }
  };
  expect_error("startup 1s\n", "");
  expect_error("healthy\nstartup 1 week\n", ":2");
  expect_error("healthy\n\nwait 1s\n", ":3");
  expect_error("healthy\nstartup $long\n", ":2");
  expect_error("healthy\nnote not json\n", ":2");
  expect_error("expect a-rule loudly\n", ":1");
}

}  // namespace
}  // namespace unidle::diagnose::testing
