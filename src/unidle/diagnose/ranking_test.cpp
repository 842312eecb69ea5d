#include "unidle/diagnose/ranking.h"

#include <gmock/gmock.h>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::ElementsAre;

Finding make(std::string id, Severity severity, std::optional<double> share) {
  Finding finding;
  finding.id = std::move(id);
  finding.severity = severity;
  finding.share = share;
  finding.evidence = {"measured"};
  return finding;
}

std::vector<std::string> ids(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings) {
    out.push_back(finding.id);
  }
  return out;
}

TEST(Rank, LeadersThenSeverityThenShareWithNullLast) {
  std::vector<Finding> findings = {
      make("warning-null", Severity::kWarning, {}),   make("info", Severity::kInfo, 0.9),
      make("warning-zero", Severity::kWarning, 0.0),  make("critical-small", Severity::kCritical, 0.3),
      make("device-unused", Severity::kCritical, {}), make("critical-large", Severity::kCritical, 0.5),
      make("out-of-memory", Severity::kCritical, {}), make("run-timed-out", Severity::kCritical, {}),
      make("run-failed", Severity::kWarning, {}),
  };
  rank(findings);
  EXPECT_THAT(ids(findings), ElementsAre("run-failed", "run-timed-out", "out-of-memory", "device-unused",
                                         "critical-large", "critical-small", "warning-zero", "warning-null", "info"));
}

TEST(Rank, WhatCanBeWonCountsNotWhatIsLost) {
  Finding no_workers = make("loader-no-workers", Severity::kCritical, 0.5);
  no_workers.speedup_bound = 1.02;
  Finding again = make("recomputed-features", Severity::kWarning, 0.2);
  again.speedup_bound = 1.25;
  std::vector<Finding> findings = {make("info", Severity::kInfo, 0.9), no_workers, again};
  rank(findings);
  EXPECT_THAT(ids(findings), ElementsAre("recomputed-features", "loader-no-workers", "info"));
}

TEST(Rank, ACriticalCauseOfWhichLittleCanBeWonIsNoMoreThanAWarning) {
  Finding no_workers = make("loader-no-workers", Severity::kCritical, 0.5);
  no_workers.speedup_bound = 1.2;
  Finding again = make("recomputed-features", Severity::kWarning, 0.25);
  again.speedup_bound = 1.3;
  std::vector<Finding> findings = {no_workers, again};
  rank(findings);
  EXPECT_THAT(ids(findings), ElementsAre("recomputed-features", "loader-no-workers"));
  findings.back().speedup_bound = 2;
  rank(findings);
  EXPECT_THAT(ids(findings), ElementsAre("loader-no-workers", "recomputed-features"));
}

TEST(Rank, AFailureThatIsAHintDoesNotLead) {
  std::vector<Finding> findings = {make("run-failed", Severity::kInfo, {}),
                                   make("loader-no-workers", Severity::kWarning, 0.2)};
  rank(findings);
  EXPECT_EQ(findings.front().id, "loader-no-workers");
}

TEST(Answer, ADeviceThatIsNotBusyHasACauseThatWasNotFound) {
  Signals signals = healthy_cpu();
  signals.device_busy = 0.5;
  EXPECT_THAT(answer(diagnose(signals)), ::testing::HasSubstr("No cause was found"));
  Policy policy;
  policy.healthy_busy = 0.4;
  EXPECT_THAT(answer(diagnose(signals, policy)), ::testing::HasSubstr("Nothing holds this run up"));
}

TEST(Fold, TheSpecificCauseTakesTheGeneralOne) {
  std::vector<Finding> findings = {make("loader-no-workers", Severity::kCritical, 0.5),
                                   make("loader-per-row", Severity::kCritical, 0.4)};
  EXPECT_THAT(fold(findings), ElementsAre("loader-no-workers"));
  EXPECT_THAT(ids(findings), ElementsAre("loader-per-row"));
  EXPECT_THAT(findings[0].evidence.back(), ::testing::HasSubstr("loader-no-workers"));
}

TEST(Fold, SamplesThatCostTooMuchExplainALoaderThatWorkersWouldNotHelp) {
  std::vector<Finding> findings = {make("dataset-slow-sample", Severity::kCritical, 0.5),
                                   make("loader-no-workers", Severity::kWarning, 0.5)};
  EXPECT_TRUE(fold(findings).empty()) << "workers gain as well";
  findings[1].shows = Symptom::kNoUseOfWorkers;
  EXPECT_THAT(fold(findings), ElementsAre("loader-no-workers"));
}

TEST(Fold, CodeBetweenTheStepsIsExplainedAtItsOwnLineOnly) {
  std::vector<Finding> findings = {make("python-between-steps", Severity::kWarning, 0.26),
                                   make("steps-slow-down", Severity::kWarning, 0.21)};
  EXPECT_TRUE(fold(findings).empty()) << "nobody knows where";
  findings[0].where = "train.py:41";
  findings[1].where = "train.py:70";
  EXPECT_TRUE(fold(findings).empty());
  findings[1].where = findings[0].where;
  EXPECT_THAT(fold(findings), ElementsAre("python-between-steps"));
}

TEST(Fold, AHintFoldsNothing) {
  std::vector<Finding> findings = {make("loader-no-workers", Severity::kCritical, 0.5),
                                   make("loader-per-row", Severity::kInfo, 0.4)};
  EXPECT_TRUE(fold(findings).empty());
  EXPECT_EQ(findings.size(), 2U);
}

TEST(Fold, WorkersAndCacheAreLeversOfTheirOwn) {
  Signals signals = waiting_cpu(0.6);
  set_effective(signals, "cache.features", "false");
  EXPECT_THAT(ids(diagnose(signals).findings), ElementsAre("loader-no-workers", "recomputed-features"));
}

TEST(VerdictOf, FollowsTheStrongestFinding) {
  EXPECT_EQ(diagnose(waiting_cpu(0.6)).verdict, Verdict::kInputBound);
  EXPECT_EQ(diagnose(healthy_cpu()).verdict, Verdict::kHealthy);
  EXPECT_EQ(diagnose(healthy_gpu()).verdict, Verdict::kHealthy);
  EXPECT_EQ(diagnose(Signals{}).verdict, Verdict::kUnknown);

  Signals failed = waiting_cpu(0.6);
  failed.exit_code = 1;
  EXPECT_EQ(diagnose(failed).verdict, Verdict::kFailed);
  EXPECT_EQ(diagnose(failed).findings.front().id, "run-failed");

  Signals unused = waiting_cpu(0.6);
  unused.gpus = 1;
  EXPECT_EQ(diagnose(unused).verdict, Verdict::kDeviceUnused);
}

TEST(VerdictOf, CodeBetweenTheStepsThatNobodySawIsNoHealth) {
  Signals signals = healthy_cpu();
  signals.step->other = 0.6;
  signals.step->compute = 0.3;
  EXPECT_EQ(diagnose(signals).verdict, Verdict::kUnknown);
  EXPECT_THAT(
      answer(diagnose(signals)),
      ::testing::StartsWith("Your run spends 60 % of each step outside model, optimiser and loader; what was read does "
                            "not show in which lines."));
  signals.step->other = 0.2;
  EXPECT_EQ(diagnose(signals).verdict, Verdict::kHealthy) << "no cause of a third of the run";
  signals.step->other = 0.6;
  signals.hot = {{"train", "train", "train.py:60", "update", 90, 100}, {"train", "between", "train.py:9", "", 2, 2}};
  EXPECT_EQ(diagnose(signals).verdict, Verdict::kHealthy) << "a method of the model, by the stack samples";
}

TEST(VerdictOf, ATracebackWithExitCodeZeroIsAFailedOutcome) {
  Signals signals = healthy_cpu();
  signals.output_tail = "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: x\nDone.\n";
  EXPECT_EQ(diagnose(signals).outcome, Outcome::kFailed);
  signals.output_tail.clear();
  EXPECT_EQ(diagnose(signals).outcome, Outcome::kCompleted);
}

TEST(VerdictOf, ATimeOutFoldsTheExitCodeAndKeepsItsOutcome) {
  Signals signals = healthy_cpu();
  signals.outcome = Outcome::kTimedOut;
  signals.exit_signal = 15;
  const Diagnosis diagnosis = diagnose(signals);
  EXPECT_THAT(ids(diagnosis.findings), ElementsAre("run-timed-out"));
  EXPECT_EQ(diagnosis.outcome, Outcome::kTimedOut);
  EXPECT_EQ(diagnosis.verdict, Verdict::kFailed);
}

TEST(VerdictOf, ALargeWaitThatNoRuleCouldExplainIsNotHealthy) {
  Signals signals = waiting_cpu(0.6);
  signals.settings.erase("loader.workers");
  const Diagnosis diagnosis = diagnose(signals);
  EXPECT_EQ(diagnosis.verdict, Verdict::kInputBound);
  EXPECT_TRUE(diagnosis.findings.empty());
}

TEST(VerdictOf, AnIgnoredSettingIsNamedAfterWhereTheTimeWent) {
  Signals signals = healthy_cpu();
  signals.cpu_bf16 = true;
  signals.settings["precision.amp"] = {"true", "a.yaml:1", "off"};
  EXPECT_EQ(diagnose(signals).verdict, Verdict::kComputeBound);
  signals = waiting_cpu(0.6);
  signals.settings["loader.workers"] = {"4", "a.yaml:1", "0"};
  const Diagnosis diagnosis = diagnose(signals);
  EXPECT_EQ(diagnosis.verdict, Verdict::kInputBound);
  EXPECT_THAT(ids(diagnosis.findings), ElementsAre("loader-no-workers", "setting-ignored"));
}

}  // namespace
}  // namespace unidle::diagnose::testing
