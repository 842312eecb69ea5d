// Rules about what samples cost and how rows are fetched, except recomputed-features.
#include <gmock/gmock.h>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SampleWork, OfATrainingThreadThatOnlyWaitsIsNone) {
  Signals signals = waiting_cpu(0.9);
  signals.sample_s = 0.05;
  signals.cpus_allowed = 1;
  set_effective(signals, "loader.workers", "2");
  signals.loader_busy = 1;
  signals.loader.emplace();
  signals.loader->workers = 2;
  signals.hot = {{"train", "input", "main.py:327", "train", 97, 100}, {"worker", "input", "data.py:8", "decode", 3, 3}};
  EXPECT_EQ(fired("dataset-slow-sample", signals).where, "data.py:8");
}

TEST(DatasetSlowSample, KeepsNoSamplesThatAreDrawnUntilTheyWereCompared) {
  Signals signals = waiting_cpu(0.9);
  signals.sample_s = 0.05;
  signals.cpus_allowed = 1;
  signals.loader.emplace().draws = "RandomCrop";
  set_effective(signals, "cache.features", "off");
  const Finding finding = fired("dataset-slow-sample", signals);
  EXPECT_EQ(fix_of(finding, "cache.features"), nullptr);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("RandomCrop draws random numbers")));
  signals.samples.emplace();
  signals.samples->compared_samples = signals.samples->identical_samples = 8;
  EXPECT_NE(fix_of(fired("dataset-slow-sample", signals), "cache.features"), nullptr) << "what was measured counts";
}

TEST(DatasetSlowSample, OfAnIterableDataSetNobodyComparedSamples) {
  Signals signals = waiting_cpu(0.9);
  signals.sample_s = 0.05;
  signals.cpus_allowed = 1;
  set_effective(signals, "cache.features", "off");
  signals.loader.emplace().map_style = false;
  const Finding finding = fired("dataset-slow-sample", signals);
  EXPECT_EQ(fix_of(finding, "cache.features"), nullptr);
  EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("samples differ"))));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("unidle cannot keep them, but the program can")));
}

TEST(DatasetSlowSample, WhatIsKeptIsMadeInTheFirstEpoch) {
  Signals signals = waiting_cpu(0.9);
  signals.sample_s = 0.05;
  signals.cpus_allowed = 1;
  set_effective(signals, "cache.features", "off");
  signals.epochs = 2;
  const Finding finding = fired("dataset-slow-sample", signals);
  EXPECT_NEAR(*finding.share, 0.81, 1e-9);
  EXPECT_NEAR(*finding.speedup_bound, amdahl(0.405), 1e-9);
  EXPECT_NEAR(*finding.later_bound, amdahl(0.9), 1e-9);
  signals.epochs = 20;
  EXPECT_NEAR(*fired("dataset-slow-sample", signals).speedup_bound, amdahl(0.81 * 0.95), 1e-9);
}

TEST(DatasetSlowSample, SaysWhereToDoLessWhenNoSettingHelps) {
  Signals signals = waiting_cpu(0.9);
  signals.sample_s = 0.05;
  signals.cpus_allowed = 1;
  set_effective(signals, "cache.features", "memory");  // nothing more can be kept
  signals.hot = {{"train", "input", "data.py:8", "decode", 90, 100}};
  EXPECT_THAT(answer(diagnose::diagnose(signals)),
              ::testing::AllOf(HasSubstr(": do less work for each sample"), HasSubstr("; see data.py:8")));
}

TEST(DatasetSlowSample, SaysWhatWorkersCouldReachWithoutOtherProcesses) {
  Signals signals = waiting_cpu(0.9);
  signals.sample_s = 0.05;
  signals.cpus_allowed = signals.cpus_online = 2;
  signals.cpus_used = 1;
  EXPECT_THAT(fired("dataset-slow-sample", signals).evidence, Contains(HasSubstr("even if all 2 CPUs made samples")));
  signals.others_cpus_used = 0.9;
  const Finding finding = fired("dataset-slow-sample", signals);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("even if the 1.1 CPUs that other processes leave made samples")));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("with all 2 CPUs to itself, workers could shorten it to ")));
}

TEST(SamplesTakeCpus, WhatIsKeptAlreadyIsNotProposed) {
  Signals signals = healthy_cpu();
  signals.cpus_used = 3.9;
  signals.loader.emplace();
  signals.loader->workers = 2;
  signals.loader->map_style = true;
  signals.samples.emplace();
  signals.samples->count = 1000;
  signals.samples->cpu_s = 100;
  const auto keeps = [&] {
    const Diagnosis diagnosis = diagnose::diagnose(signals);
    const auto found = std::ranges::find(diagnosis.findings, "samples-take-cpus", &Finding::id);
    EXPECT_NE(found, diagnosis.findings.end());
    return found != diagnosis.findings.end() && fix_of(*found, "cache.features") != nullptr;
  };
  EXPECT_TRUE(keeps());
  set_effective(signals, "cache.features", "memory");
  EXPECT_FALSE(keeps());
}

Signals rows_one_by_one() {
  Signals signals = waiting_cpu(0.6);
  signals.sample_s = 5e-6;
  signals.loader.emplace();
  signals.loader->workers = 0;
  signals.loader->in_memory = signals.loader->map_style = true;
  return signals;
}

TEST(LoaderPerRow, NamesOnlyWhatWasTried) {
  Signals signals = rows_one_by_one();
  const Finding unknown = fired("loader-per-row", signals);
  EXPECT_EQ(fix_of(unknown, "loader.gather"), nullptr);
  EXPECT_EQ(fix_of(unknown, "loader.workers")->to, 2);
  signals.loader->gathers_not = "it calls Image.fromarray";
  EXPECT_THAT(fired("loader-per-row", signals).evidence, Contains(HasSubstr("was not tried: it calls")));
  signals.loader->gathers = false;
  EXPECT_THAT(fired("loader-per-row", signals).evidence, Contains(HasSubstr("cannot be taken together")));
  EXPECT_EQ(fix_of(fired("loader-per-row", signals), "loader.gather"), nullptr);
  signals.loader->gathers = true;
  EXPECT_NE(fix_of(fired("loader-per-row", signals), "loader.gather"), nullptr);
  EXPECT_EQ(fix_of(fired("loader-per-row", signals), "loader.workers"), nullptr);
}

TEST(LoaderPerRow, IsSilentWhereTheCollateFunctionTakesTheTime) {
  Signals signals = rows_one_by_one();
  signals.samples.emplace();
  signals.samples->count = 100;
  signals.samples->total_s = 1;
  signals.samples->collate_s = 4;
  fired("loader-per-row", signals);  // torch's own collate function works row by row as well
  signals.loader->collate = "pad";
  signals.loader->collate_where = "train.py:12";
  EXPECT_TRUE(silent("loader-per-row", signals));
  EXPECT_THAT(fired("loader-no-workers", signals).evidence,
              Contains(HasSubstr("80 % of making a batch is its collate function, pad (train.py:12)")));
  signals.samples->total_s = 5;
  fired("loader-per-row", signals);
}

TEST(LoaderPerRow, ProposesNoWorkersThatGainNothing) {
  Signals signals = rows_one_by_one();
  signals.cpus_allowed = signals.cpus_online = 2;
  signals.cpus_used = 2;
  const Finding finding = fired("loader-per-row", signals);
  EXPECT_TRUE(finding.fixes.front().in_code);
  EXPECT_GT(*finding.speedup_bound, 1.5) << "that of one operation for the batch";
}

TEST(LoaderOversubscribed, BoundsWhatTheStepMayLoseToWorkersThatCostMore) {
  Signals signals = rows_one_by_one();
  set_effective(signals, "loader.workers", "4");
  signals.loader->workers = 4;
  signals.cpus_allowed = signals.cpus_online = 2;
  signals.batch_samples = 256;
  signals.samples.emplace();
  signals.samples->count = 256;
  signals.samples->total_s = 0.2 * signals.step->input * *signals.step_s;
  signals.cpus_used = 0.4;  // no more than the training thread
  const double lone = *fired("loader-oversubscribed", signals).speedup_bound;
  signals.cpus_used = 1.9;
  EXPECT_GT(*fired("loader-oversubscribed", signals).speedup_bound, 1.3 * lone);
}

TEST(LoaderPerRow, WithWorkersCountsOnlyTheWorkOfOneThread) {
  Signals signals = rows_one_by_one();
  signals.loader->workers = 4;
  set_effective(signals, "loader.workers", "4");
  signals.batch_samples = 256;
  signals.samples.emplace();
  signals.samples->count = 256;
  signals.samples->p50_s = 5e-6;
  const double wait_s = signals.step->input * *signals.step_s;
  signals.samples->total_s = wait_s / 2;
  const double half = *fired("loader-per-row", signals).share;
  signals.samples->total_s = 2 * wait_s;
  EXPECT_NEAR(half, *fired("loader-per-row", signals).share / 2, 0.01);
}

TEST(LoaderPerRow, AsksNobodyToChangeAClassOfAPackage) {
  Signals signals = rows_one_by_one();
  signals.loader->where = "train.py:12";
  signals.loader->dataset_where = "data.py:8";
  EXPECT_EQ(fired("loader-per-row", signals).where, "data.py:8");
  EXPECT_THAT(fix_of(fired("loader-per-row", signals), "loader.workers")->reason, HasSubstr("__getitems__"));
  signals.loader->dataset_where.clear();
  const Finding finding = fired("loader-per-row", signals);
  EXPECT_EQ(finding.where, "train.py:12");
  EXPECT_THAT(fix_of(finding, "loader.workers")->reason, Not(HasSubstr("__getitems__")));
}

TEST(DatasetSlowSample, ProposesToKeepOnlyWhatCanBeKept) {
  Signals signals = waiting_cpu(0.9);
  signals.sample_s = 0.05;
  signals.cpus_allowed = 1;
  set_effective(signals, "cache.features", "memory");
  EXPECT_EQ(fix_of(fired("dataset-slow-sample", signals), "cache.features"), nullptr) << "it keeps what can be kept";
  set_effective(signals, "cache.features", "off");
  EXPECT_NE(fix_of(fired("dataset-slow-sample", signals), "cache.features"), nullptr);
  signals.epochs = 1;
  signals.outcome = Outcome::kStopped;
  EXPECT_NE(fix_of(fired("dataset-slow-sample", signals), "cache.features"), nullptr) << "it may make more passes";
  signals.outcome = Outcome::kCompleted;
  const Finding of_one_pass = fired("dataset-slow-sample", signals);
  EXPECT_EQ(fix_of(of_one_pass, "cache.features"), nullptr);
  EXPECT_THAT(of_one_pass.evidence, Contains(HasSubstr("one pass")));
  signals.epochs = 3;
  EXPECT_NE(fix_of(fired("dataset-slow-sample", signals), "cache.features"), nullptr);
  signals.samples.emplace();
  signals.samples->compared_samples = 8;
  const Finding finding = fired("dataset-slow-sample", signals);
  EXPECT_EQ(fix_of(finding, "cache.features"), nullptr);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("only made cheaper")));

  signals.samples->compared_samples = 0;
  signals.loader.emplace().made_with = "unidle";
  const Finding of_package = fired("dataset-slow-sample", signals);
  EXPECT_EQ(fix_of(of_package, "cache.features"), nullptr);
  EXPECT_THAT(of_package.evidence, Contains(HasSubstr("scaled_decode")));
}

}  // namespace
}  // namespace unidle::diagnose::testing
