// Hardware counters of the device's units, and copies in the compute stream.
#include <gmock/gmock.h>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// A device that NVML reports as full.
Signals called_full(double sm_activity) {
  Signals signals = healthy_gpu();
  signals.device_busy = signals.utilisation = 0.99;
  signals.busy_is_limit = true;
  signals.sm_activity = sm_activity;
  return signals;
}

TEST(Units, ALoopOfTinyKernelsIsNotHealthyWhateverNvmlSays) {
  const Signals signals = called_full(0.03);  // whether the device keeps up is unknown
  const Finding finding = fired("launch-bound", signals);
  EXPECT_FALSE(finding.share) << "how much of it are gaps is not known";
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("3.0 %")));
  EXPECT_EQ(diagnose(signals).verdict, Verdict::kLaunchBound);
}

TEST(Units, FullUnitsAreNotWaitingForTheHost) {
  Signals signals = called_full(0.9);
  signals.device_kept_up = 0.9;
  EXPECT_TRUE(silent("launch-bound", signals));
  set_effective(signals, "precision.amp", "off");
  fired("precision-fp32", signals);  // kernels are known to run all the time
  EXPECT_EQ(diagnose(called_full(0.9)).verdict, Verdict::kHealthy);
  signals = called_full(0.9);
  signals.device_busy = signals.utilisation = 0.5;  // for example by events, which miss work outside of steps
  EXPECT_TRUE(silent("launch-bound", signals)) << "units with work are no idle device";
}

TEST(Units, ABehindDeviceWithIdleUnitsHasTooSmallABatch) {
  Signals signals = called_full(0.1);
  signals.device_kept_up = 0.02;
  EXPECT_TRUE(silent("launch-bound", signals));
  signals.gpu_memory_used = 0.1;
  EXPECT_THAT(fired("batch-too-small", signals).evidence, Contains(HasSubstr("multiprocessors have work 10 %")));
  signals.sm_activity = 0.9;
  EXPECT_TRUE(silent("batch-too-small", signals));
  signals.sm_activity.reset();
  EXPECT_TRUE(silent("batch-too-small", signals)) << "NVML calls it full";
}

TEST(Units, WithoutACauseIdleUnitsAreNotHealthy) {
  Signals signals = called_full(0.1);
  signals.device_kept_up = 0.02;
  signals.gpu_memory_used = 0.9;  // no memory left for a larger batch
  const Diagnosis diagnosis = diagnose(signals);
  EXPECT_EQ(diagnosis.verdict, Verdict::kComputeBound);
  EXPECT_THAT(answer(diagnosis), HasSubstr("use few of its multiprocessors"));
}

TEST(Units, UtilisationIsALimitAndActivityStandsBesideIt) {
  Signals signals = called_full(0.62);
  signals.tensor_activity = 0.3;
  const Diagnosis diagnosis = diagnose(signals);
  EXPECT_THAT(to_text(diagnosis, 200, false),
              HasSubstr("Device: at most 99 % busy (scripted). Its multiprocessors have work 62 % of the time, its "
                        "matrix units 30 %."));
  const auto json = to_json(diagnosis)["device"];
  EXPECT_EQ(json["busy"], 0.99);
  EXPECT_EQ(json["sm_activity"], 0.62);
  EXPECT_EQ(json["tensor_activity"], 0.3);
  EXPECT_FALSE(to_json(diagnose(healthy_gpu()))["device"].contains("sm_activity")) << "it was not sampled";
}

/// 5 ms of copies per 10 ms of compute in one stream; the host runs ahead.
Signals copies_in_line() {
  Signals signals = healthy_gpu();
  signals.step_s = 0.015;
  signals.step = StepShares{.transfer = 0.01, .compute = 0.94, .optimizer = 0.05};
  signals.device_busy = signals.utilisation = 0.98;  // NVML counts copies
  signals.device_kept_up = 0.02;
  signals.pinned_rate = 20e9;
  signals.transfer = TransferFacts{.pinned_bytes = 1e11, .blocking = 0, .nonblocking = 1000, .where = "train.py:7"};
  signals.transfer->in_line_bytes = 1e11;  // 1000 steps of 100 MB
  set_effective(signals, "compile.mode", "off");
  return signals;
}

TEST(CopiesInLine, AreNotCalledLaunches) {
  const Signals signals = copies_in_line();
  EXPECT_TRUE(silent("launch-bound", signals));
  EXPECT_TRUE(silent("compile-off", signals));
  const Finding finding = fired("transfer-not-overlapped", signals);
  EXPECT_NEAR(*finding.share, 0.33 * 0.9, 0.01);
  EXPECT_EQ(finding.where, "train.py:7");
  EXPECT_THAT(finding.fixes.front().reason, HasSubstr("side stream"));
  EXPECT_TRUE(finding.fixes.front().in_code);
  const Diagnosis diagnosis = diagnose(signals);
  EXPECT_EQ(diagnosis.verdict, Verdict::kTransferBound);
  EXPECT_THAT(answer(diagnosis), HasSubstr("copies instead of computing"));
  EXPECT_THAT(to_text(diagnosis, 200, false), HasSubstr("=> copy the next batch on a side stream"));
}

TEST(CopiesInLine, AreNotTimeThatFasterUnitsWin) {
  Signals signals = copies_in_line();
  set_effective(signals, "precision.amp", "off");
  EXPECT_NEAR(*fired("precision-fp32", signals).share, 0.67 * 0.9 / 2, 0.01);
  EXPECT_EQ(diagnose(signals).verdict, Verdict::kTransferBound);
}

TEST(CopiesInLine, WhatTheyExplainIsNoRunThatIsHealthy) {
  Signals signals = copies_in_line();
  signals.transfer->in_line_bytes.reset();
  signals.device_busy = signals.utilisation = 0.67;
  EXPECT_THAT(missing("transfer-not-overlapped", signals), HasSubstr("which stream"));
  EXPECT_EQ(diagnose(signals).verdict, Verdict::kUnknown) << "a third of its time no kernel runs";
}

TEST(CopiesInLine, TakeNoTimeInWhichTheUnitsWork) {
  Signals signals = copies_in_line();
  signals.sm_activity = 0.8;
  EXPECT_NEAR(*fired("transfer-not-overlapped", signals).share, 0.2 * 0.9, 0.01);
  EXPECT_THAT(fired("transfer-not-overlapped", signals).evidence, Not(Contains(HasSubstr("computes meanwhile"))));
}

TEST(CopiesInLine, NoMoreIsWonThanThereIsToHideThemBehind) {
  Signals signals = copies_in_line();
  signals.transfer->in_line_bytes = 2.4e11;  // 12 of 15 ms
  signals.device_busy = signals.utilisation = 0.2;
  EXPECT_NEAR(*fired("transfer-not-overlapped", signals).share, 0.2 * 0.9, 0.01);
}

TEST(CopiesInLine, TheCopyItselfIsNotWonByPinningOrByGoingOn) {
  Signals signals = copies_in_line();
  signals.step = StepShares{.transfer = 0.6, .compute = 0.4};
  signals.device_busy = signals.utilisation = 0.3;
  signals.device_kept_up.reset();
  signals.transfer =
      TransferFacts{.pinned_bytes = 0, .pageable_bytes = 1e11, .blocking = 1000, .nonblocking = 0, .where = ""};
  signals.transfer->in_line_bytes = 1e11;
  const Finding pageable = fired("memory-not-pinned", signals);
  EXPECT_NEAR(*pageable.share, (0.6 - 0.333) * 0.9, 0.01);
  EXPECT_THAT(pageable.evidence, Contains(HasSubstr("side stream")));
  std::swap(signals.transfer->pinned_bytes, signals.transfer->pageable_bytes);
  EXPECT_NEAR(*fired("transfer-blocking", signals).share, (0.6 - 0.333) * 0.9, 0.01);
  EXPECT_NEAR(*fired("transfer-not-overlapped", signals).share, 0.333 * 0.9, 0.01) << "the rest";
  signals.step = StepShares{.transfer = 0.34, .compute = 0.66};
  EXPECT_TRUE(silent("transfer-blocking", signals)) << "nothing but the copy is waited for";
  signals.pinned_rate.reset();
  EXPECT_THAT(fired("transfer-blocking", signals).evidence, Contains(HasSubstr("not known")));
}

TEST(CopiesInLine, ADataSetOnTheDeviceSavesCopiesThatDoNotBlock) {
  Signals signals = copies_in_line();
  signals.loader.emplace().in_memory_bytes = 1'000'000'000;
  signals.gpu.memory_bytes = 80'000'000'000;
  signals.gpu_memory_used = 0.1;
  EXPECT_NEAR(*fired("dataset-fits-device", signals).share, 0.33 * 0.9, 0.01);
  signals.device_kept_up = 0.9;
  EXPECT_TRUE(silent("dataset-fits-device", signals));
}

Signals slow_link() {
  Signals signals = healthy_gpu();
  signals.gpu.link_width = 4;
  signals.gpu.link_width_max = 16;
  signals.gpu.link_generation = signals.gpu.link_generation_max = 4;
  signals.step->transfer = 0.3;
  signals.device_busy = 0.3;
  return signals;
}

TEST(Link, AVirtualBridgeIsAHint) {
  Signals signals = slow_link();
  EXPECT_TRUE(fired("link-degraded", signals).share);
  signals.virtual_machine = true;
  const Finding finding = fired("link-degraded", signals);
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_FALSE(finding.share);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("virtual machine")));
}

TEST(Link, MoreThanItCanCarryWasNotCarriedByIt) {
  Signals signals = slow_link();  // 7.9 GB/s
  signals.gpu.link_received = 7e9;
  fired("link-degraded", signals);
  signals.gpu.link_received = 12e9;
  EXPECT_TRUE(silent("link-degraded", signals));
}

}  // namespace
}  // namespace unidle::diagnose::testing
