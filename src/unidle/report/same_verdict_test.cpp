// A search and a comparison give the same verdict about the same two records.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unidle/base/files.h"
#include "unidle/report/comparison.h"
#include "unidle/report/testing/scripted_run.h"
#include "unidle/tune/search/repeats.h"
#include "unidle/tune/trials/trial_record.h"

namespace unidle::report {
namespace {

using testing::Script;
using testing::scripted_run;

struct Case {
  const char* what;
  knobs::Settings changes;
  double loss_factor = 1;
  std::uint64_t seed = 1;  // of the losses; 1: same samples in the same order
  int losses_every = 1;
  bool held = true;
};

const knobs::Settings kExact = {{"loader.workers", 4}};
const knobs::Settings kNumeric = {{"precision.amp", "bf16"}};

const std::vector<Case> kCases = {
    {"the same run", kExact, 1, 1, 1, true},
    {"rounding", kExact, 1.01, 1, 1, true},
    {"each loss is 4 % higher, exact", kExact, 1.04, 1, 1, false},
    {"each loss is 4 % lower, exact", kExact, 0.96, 1, 1, false},
    {"each loss is 4 % higher, numeric", kNumeric, 1.04, 1, 1, true},
    {"each loss is 4 % lower, numeric", kNumeric, 0.96, 1, 1, true},
    {"each loss is 6 % higher, numeric", kNumeric, 1.06, 1, 1, false},
    {"other samples", kExact, 1, 9, 1, true},
    {"other samples, a quarter higher", kExact, 1.25, 9, 1, false},
    {"the loss is read rarely", kExact, 1, 1, 5, true},
    {"the loss is read rarely and is higher", kExact, 1.1, 1, 5, false},
    {"a loss that is no number", kNumeric, std::numeric_limits<double>::quiet_NaN(), 1, 1, false},
};

RunData run_in(const Case& each, bool changed) {
  Script script;
  script.seed = changed ? each.seed : 1;
  script.settings = {{"loader.workers", "0", "effective", ""}, {"precision.amp", "off", "effective", ""}};
  RunData run = scripted_run(script);
  if (!changed) {
    return run;
  }
  for (record::Setting& setting : run.settings) {
    const knobs::Value* change = each.changes.find(setting.knob);
    setting.value = change == nullptr ? setting.value : change->to_text();
  }
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    run.steps[i].loss = *run.steps[i].loss * each.loss_factor;
    if (i % static_cast<std::size_t>(each.losses_every) != 0) {
      run.steps[i].loss.reset();
    }
  }
  return run;
}

tune::TrialResult trial_of(const std::filesystem::path& record, experiment::LossScale& scale) {
  tune::TrialResult result;
  EXPECT_TRUE(tune::read_trial(account::load_run(record), scale, result)) << result.problem;
  return result;
}

TEST(SameVerdict, OfASearchAndAComparison) {
  for (const Case& each : kCases) {
    const TemporaryFolder scratch;
    testing::write_record(run_in(each, false), scratch.path() / "a");
    testing::write_record(run_in(each, true), scratch.path() / "b");

    const Comparison compared =
        compare(account::load_run(scratch.path() / "a"), account::load_run(scratch.path() / "b"));

    experiment::LossScale scale;
    tune::Repeats repeats{knobs::Settings{}};
    repeats.add(trial_of(scratch.path() / "a", scale));
    const experiment::Parity searched = repeats.parity_of(trial_of(scratch.path() / "b", scale), each.changes);

    EXPECT_EQ(searched.held, each.held) << each.what << ": " << searched.why;
    EXPECT_EQ(compared.learning.held, each.held) << each.what << ": " << compared.learning.why;
    EXPECT_EQ(compared.regression(), !each.held) << each.what;
    const experiment::Measure& loss = compared.learning.measures.front();
    EXPECT_EQ(loss.verdict, searched.measures.front().verdict) << each.what;
    if (std::isfinite(each.loss_factor)) {
      EXPECT_NEAR(loss.a, searched.measures.front().a, 0.05 * loss.a) << each.what;
      EXPECT_NEAR(loss.b / loss.a, searched.measures.front().b / searched.measures.front().a, 1e-9) << each.what;
      // A comparison ends at the samples that both have seen; a search knows how far its first trial went.
      EXPECT_NEAR(loss.allowed / loss.a, searched.measures.front().allowed / searched.measures.front().a, 2e-3)
          << each.what;
    }
  }
}

}  // namespace
}  // namespace unidle::report
