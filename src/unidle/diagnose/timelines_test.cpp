// Checks that every timeline, and its near misses, are diagnosed as they expect.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/rule.h"
#include "unidle/diagnose/signals_from_record.h"
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
  for (const RecordVariation& disguise :
       {RecordVariation{4711, 1000000000, false}, RecordVariation{42, 86400000000000, false},
        RecordVariation{42, 1000000000, true}}) {
    const TemporaryFolder folder;
    write_record(timeline, {}, folder.path() / "other name", disguise);
    EXPECT_EQ(to_json(diagnose_record(folder.path() / "other name")).dump(), plain);
  }
}

TEST(TimelinesAll, TheHostCostsNoMoreThanTheDeviceIdles) {
  int checked = 0;
  for (const auto& file : timelines_in(kFolder)) {
    const TemporaryFolder folder;
    write_record(read_timeline(file), {}, folder.path() / "run");
    const Signals signals = read_signals(record::Reader(folder.path() / "run"));
    if (signals.device_kind == "cpu" || !signals.device_busy || signals.busy_by_events) {
      continue;  // step events do not show what the device does around them
    }
    const double idle = 1 - *signals.device_busy * signals.time.train / signals.wall_s;
    for (const Finding& finding : diagnose::diagnose(signals).findings) {
      if (find_rule(finding.id)->counts == Counts::kHostTime && finding.share) {
        EXPECT_LE(*finding.share, idle + 0.01) << file << ": " << finding.id;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 10);
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

/// "60ms", "0.35", "6e9": a number and its unit; times become seconds.
std::optional<std::pair<double, std::string>> amount_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) {
    return std::nullopt;
  }
  static const std::map<std::string_view, double> kSeconds = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}};
  const auto unit = kSeconds.find(end);
  return unit == kSeconds.end() ? std::pair(value, std::string(end))
                                : std::pair(value * unit->second, std::string("s"));
}

/// Values between those of a near miss and those of the run; nothing when one of them is not an amount.
std::optional<std::map<std::string, std::string>> between(const TimelineCase& timeline, const Variant& near,
                                                          double part) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : near.values) {
    const auto from = amount_of(value);
    const auto to = amount_of(timeline.values.at(name));
    if (name == "reasons" || !from || !to || from->second != to->second) {  // reasons are bits, not an amount
      return std::nullopt;
    }
    const double now = from->first + part * (to->first - from->first);
    const bool whole =
        to->second.empty() && from->first == std::floor(from->first) && to->first == std::floor(to->first);
    values[name] = fmt::format("{}{}", whole ? std::round(now) : now, to->second);
  }
  return values;
}

/// How strongly a diagnosis reports a rule: its severity, and its share if any.
std::pair<int, double> weight_of(const Diagnosis& diagnosis, const std::string& id) {
  for (const Finding& finding : diagnosis.findings) {
    if (finding.id == id) {
      const int rank = finding.severity == Severity::kCritical ? 3 : finding.severity == Severity::kWarning ? 2 : 1;
      return {rank, finding.share.value_or(0)};
    }
  }
  return {0, 0};
}

/// Changes every near miss gradually into the run; the first expected finding must never get weaker on the way.
void expect_more_is_never_less(const TimelineCase& timeline) {
  for (const Variant& near : timeline.variants) {
    if (near.missing || timeline.expectations.empty() || !between(timeline, near, 0)) {
      continue;
    }
    std::pair<int, double> last{0, 0};
    for (const double part : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      const auto weight =
          weight_of(diagnosis_of(timeline, *between(timeline, near, part)), timeline.expectations[0].id);
      EXPECT_GE(weight.first, last.first) << near.name << " at " << part;
      EXPECT_GE(weight.second, last.second - 0.005) << near.name << " at " << part;
      last = weight;
    }
    EXPECT_GT(last.first, 0) << near.name;
  }
}

TEST_P(Timelines, MoreOfTheCauseIsNeverLess) { expect_more_is_never_less(read_timeline(GetParam())); }

TEST(TimelinesAll, EveryRuleIsTurnedUpOrIsAYesOrNo) {
  std::set<std::string> seen;
  for (const auto& file : timelines_in(kFolder)) {
    const TimelineCase timeline = read_timeline(file);
    for (const Variant& near : timeline.variants) {
      if (!near.missing && !timeline.expectations.empty() && (timeline.yes_or_no || between(timeline, near, 0))) {
        seen.insert(timeline.expectations[0].id);
      }
    }
  }
  for (const Rule* rule : all_rules()) {
    EXPECT_TRUE(seen.contains(rule->id)) << rule->id;
  }
}

TEST(TimelinesAll, TheEngineIsToldOfItsOwnGraph) {
  const auto proposed = [](const TimelineCase& timeline) {
    std::map<std::string, nlohmann::json> by_rule;
    for (const Finding& finding : diagnosis_of(timeline, {}).findings) {
      for (const knobs::Change& fix : finding.fixes) {
        if (fix.knob == "compile.mode") {
          by_rule[finding.id] = fix.to ? fix.to->to_json() : nlohmann::json();
        }
      }
    }
    return by_rule;
  };
  TimelineCase timeline = read_timeline(kFolder / "launch-bound.timeline");
  EXPECT_EQ(proposed(timeline).at("launch-bound"), "reduce-overhead");
  timeline.lines.insert(timeline.lines.begin(), "setting workload recsys");
  EXPECT_EQ(proposed(timeline).at("launch-bound"), "graph");
  EXPECT_EQ(proposed(timeline).at("compile-off"), "graph");
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
