// recomputed-features.
#include <gmock/gmock.h>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Signals recomputing() {
  Signals signals = waiting_cpu(0.6);
  set_effective(signals, "cache.features", "off");
  return signals;
}

TEST(RecomputedFeatures, CountsOnlyTheLaterEpochs) {
  const Finding finding = fired("recomputed-features", recomputing());
  EXPECT_NEAR(*finding.share, 0.54 * 2 / 3, 1e-9);
  EXPECT_EQ(fix_of(finding, "cache.features")->to, "memory");
}

TEST(RecomputedFeatures, LaterEpochsGainMoreThanTheRun) {
  // 60 % of each step, which later epochs need not take; of three epochs, two are later ones.
  EXPECT_NEAR(*fired("recomputed-features", recomputing()).later_bound, 2.5, 1e-9);
  Diagnosis diagnosis = diagnose(recomputing());
  std::erase_if(diagnosis.findings, [](const Finding& finding) { return finding.id != "recomputed-features"; });
  EXPECT_THAT(answer(diagnosis),
              HasSubstr(", at best 2.5x as fast in training from the second epoch on and 1.6x in this run"));
}

TEST(RecomputedFeatures, OnlyTheWaitsOfLaterEpochsCount) {
  Signals signals = recomputing();
  signals.late_input_s = 30;
  signals.late_training_s = 75;
  EXPECT_NEAR(*fired("recomputed-features", signals).later_bound, 1 / 0.6, 1e-9);
}

TEST(RecomputedFeatures, OfADataSetThatIsMadeAnewMemoryKeepsNothing) {
  Signals signals = recomputing();
  signals.loader.emplace();
  signals.loader->dataset_anew = false;
  EXPECT_EQ(fix_of(fired("recomputed-features", signals), "cache.features")->to, "memory");
  signals.loader->dataset_anew = true;
  const Finding finding = fired("recomputed-features", signals);
  EXPECT_EQ(fix_of(finding, "cache.features")->to, "disk");
  EXPECT_THAT(fix_of(finding, "cache.features")->reason, HasSubstr("made anew"));
}

TEST(RecomputedFeatures, WhatTheFeatureCacheKeepsIsThereForLaterRuns) {
  Signals signals = recomputing();
  signals.settings["workload"].configured = "superres";
  EXPECT_EQ(fix_of(fired("recomputed-features", signals), "cache.features")->to, "memory");
  signals.settings["workload"].configured = "protein";
  const Finding finding = fired("recomputed-features", signals);
  EXPECT_EQ(fix_of(finding, "cache.features")->to, "disk");
  EXPECT_THAT(fix_of(finding, "cache.features")->reason, HasSubstr("later runs find it there"));
}

TEST(RecomputedFeatures, SaysOnlyOfTheSameSamplesThatTheyWereThere) {
  Signals signals = recomputing();
  EXPECT_THAT(fired("recomputed-features", signals).evidence, Not(Contains(HasSubstr("repeated earlier results"))));
  signals.samples.emplace();
  signals.samples->compared_samples = signals.samples->identical_samples = 12;
  EXPECT_THAT(fired("recomputed-features", signals).evidence, Contains(HasSubstr("repeated earlier results")));
}

TEST(RecomputedFeatures, OfSamplesThatDifferOnlyAFunctionsResultsCanBeKept) {
  Signals signals = recomputing();
  signals.samples.emplace();
  signals.samples->compared_samples = 12;
  signals.samples->identical_samples = 5;
  EXPECT_TRUE(silent("recomputed-features", signals));
  signals.loader.emplace();
  signals.loader->workers = 0;
  signals.hot = {{"train", "input", "train.py:65", "read_picture", 60, 100},
                 {"train", "input", "train.py:80", "Photos.__getitem__", 40, 100}};
  EXPECT_TRUE(silent("recomputed-features", signals));
  signals.loader->keepable = {"read_picture"};
  const Finding finding = fired("recomputed-features", signals);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("7 of 12 samples")));
  EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("repeated earlier results"))));
  EXPECT_NEAR(*finding.share, 0.54 * 2 / 3 * 0.6, 1e-9) << "that part of the sample work";
}

TEST(RecomputedFeatures, NamesTheFunctionThatCanBeCached) {
  Signals signals = recomputing();
  signals.loader.emplace();
  signals.loader->workers = 0;
  signals.hot = {{"train", "input", "train.py:65", "read_picture", 60, 100}};
  signals.loader->keepable = {"turned", "read_picture"};
  EXPECT_THAT(fix_of(fired("recomputed-features", signals), "cache.features")->reason, Not(HasSubstr("unidle.cached")));
  signals.loader->keepable_where = {"train.py:40", ""};
  EXPECT_THAT(fix_of(fired("recomputed-features", signals), "cache.features")->reason, Not(HasSubstr("unidle.cached")));
  signals.loader->keepable_where = {"train.py:40", "train.py:60"};
  EXPECT_THAT(fix_of(fired("recomputed-features", signals), "cache.features")->reason,
              HasSubstr("@unidle.cached above read_picture (train.py:60)"));
}

TEST(RecomputedFeatures, NearMissesAreSilent) {
  Signals signals = recomputing();
  signals.epochs = 1;
  EXPECT_TRUE(silent("recomputed-features", signals));
  signals = recomputing();
  signals.sample_s = 5e-6;  // a row of a table in memory
  EXPECT_TRUE(silent("recomputed-features", signals));
  signals = recomputing();
  set_effective(signals, "cache.features", "memory");
  EXPECT_TRUE(silent("recomputed-features", signals));
  signals = recomputing();
  set_input(signals, 0.05);
  EXPECT_TRUE(silent("recomputed-features", signals));
}

TEST(RecomputedFeatures, MissingIsNotZero) {
  Signals signals = recomputing();
  signals.epochs.reset();
  EXPECT_THAT(missing("recomputed-features", signals), HasSubstr("passes over the data"));
  signals.epochs = 0;
  EXPECT_TRUE(silent("recomputed-features", signals));
  signals = recomputing();
  signals.settings.erase("cache.features");
  EXPECT_THAT(missing("recomputed-features", signals), HasSubstr("cache.features"));
  signals = recomputing();
  signals.sample_s.reset();
  EXPECT_THAT(missing("recomputed-features", signals), HasSubstr("sample"));
}

}  // namespace
}  // namespace unidle::diagnose::testing
