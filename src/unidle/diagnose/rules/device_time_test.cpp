// On a GPU, what the host does while the device computes costs nothing, and arithmetic takes as long as the device is
// busy, wherever the host waits for it.
#include <gmock/gmock.h>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::HasSubstr;

Signals waiting_gpu(double input, double busy) {
  Signals signals = healthy_gpu();
  set_effective(signals, "loader.workers", "0");
  signals.loader_busy.reset();
  set_input(signals, input);
  signals.device_busy = busy;
  return signals;
}

TEST(DeviceTime, AFullDeviceHidesASlowLoader) {
  EXPECT_TRUE(silent("loader-no-workers", waiting_gpu(0.6, 0.97)));
  const Diagnosis diagnosis = diagnose(waiting_gpu(0.6, 0.97));
  EXPECT_EQ(diagnosis.verdict, Verdict::kHealthy) << diagnosis.findings.front().id;
}

TEST(DeviceTime, WaitingCostsWhatTheDeviceIdles) {
  EXPECT_NEAR(*fired("loader-no-workers", waiting_gpu(0.6, 0.2)).share, 0.6 * 0.9, 1e-9);
  EXPECT_NEAR(*fired("loader-no-workers", waiting_gpu(0.6, 0.7)).share, 0.3 * 0.9, 1e-9);
  const Diagnosis diagnosis = diagnose(waiting_gpu(0.6, 0.7));
  EXPECT_THAT(diagnosis.findings.front().evidence, ::testing::Contains(HasSubstr("computes meanwhile")));
  Signals signals = waiting_gpu(0.6, 0.7);
  signals.device_busy.reset();  // not known: the wait itself counts
  EXPECT_NEAR(*fired("loader-no-workers", signals).share, 0.6 * 0.9, 1e-9);
}

/// The host spends most of each step in blocking copies and launches slowly: kernels run 60 % of it.
Signals slow_host(double span) {
  Signals signals = healthy_gpu();
  signals.device_busy = 0.6;
  signals.step->transfer = 0.6;
  signals.step->compute = 0.3;
  signals.transfer = TransferFacts{.pinned_bytes = 1e9, .blocking = 100, .nonblocking = 0, .where = ""};
  signals.device_span_s = signals.device_step_s = span * *signals.step_s;
  return signals;
}

TEST(DeviceTime, GapsWithinAStepsWorkAreNoLossOfItsCopies) {
  EXPECT_TRUE(silent("transfer-blocking", slow_host(0.95)));
  EXPECT_NEAR(*fired("launch-bound", slow_host(0.95)).share, (0.4 - 0.05) * 0.9, 1e-9);
  EXPECT_NEAR(*fired("transfer-blocking", slow_host(0.7)).share, 0.3 * 0.9, 1e-9);
  Signals signals = slow_host(0.95);
  signals.micro_batches = 4;  // three of four copies lie within the span
  EXPECT_NEAR(*fired("transfer-blocking", signals).share, 0.4 * 0.9, 1e-9);
}

TEST(DeviceTime, ADeviceThatKeepsUpIdlesMeanwhile) {
  Signals signals = waiting_gpu(0.6, 0.97);
  signals.device_kept_up = 0.9;
  EXPECT_NEAR(*fired("loader-no-workers", signals).share, 0.6 * 0.9, 1e-9);
}

TEST(DeviceTime, CopiesAndLoggingCostNoMoreEither) {
  Signals signals = healthy_gpu();
  signals.device_busy = 0.98;
  signals.step->transfer = 0.5;
  signals.step->compute = 0.4;
  signals.transfer =
      TransferFacts{.pinned_bytes = 0, .pageable_bytes = 1e9, .blocking = 100, .nonblocking = 0, .where = ""};
  signals.logging = LoggingFacts{1000, 50, "train.py:3"};
  signals.time = {.startup = 1, .train = 98, .validate = 0, .checkpoint = 0, .other = 1};
  EXPECT_TRUE(silent("memory-not-pinned", signals));
  EXPECT_TRUE(silent("logging-dominates", signals));
  signals.device_busy = 0.3;
  EXPECT_NEAR(*fired("memory-not-pinned", signals).share, 0.5 * 0.98, 1e-9);
  EXPECT_NEAR(*fired("logging-dominates", signals).share, 0.5, 1e-9);
}

/// The host reads the loss in each step: its wait is the device's arithmetic.
Signals reads_each_step() {
  Signals signals = healthy_gpu();
  signals.step = StepShares{.input = 0.01, .compute = 0.03, .sync = 0.95, .optimizer = 0.01};
  signals.syncs_per_step = 1;
  signals.device_busy = 0.96;
  set_effective(signals, "precision.amp", "off");
  set_effective(signals, "precision.tf32", "false");
  signals.model_has_convolutions = false;
  signals.model_parameters = 10'000'000;
  return signals;
}

TEST(DeviceTime, ArithmeticIsJudgedWhereverTheHostWaits) {
  EXPECT_NEAR(*fired("tf32-off", reads_each_step()).share, 0.96 * 0.9 / 2, 1e-9);
  EXPECT_NEAR(*fired("precision-fp32", reads_each_step()).share, 0.96 * 0.9 / 2, 1e-9);
  EXPECT_EQ(diagnose(reads_each_step()).verdict, Verdict::kComputeBound);
  Signals signals = reads_each_step();
  signals.model_has_convolutions = true;
  set_effective(signals, "cudnn.benchmark", "false");
  set_effective(signals, "precision.amp", "bf16");
  set_effective(signals, "layout.channels_last", "false");
  signals.batch_shapes = 1;
  fired("cudnn-not-tuned", signals);
  fired("layout-not-channels-last", signals);
}

TEST(DeviceTime, ConvolutionsThatUseTf32DoNotCount) {
  Signals signals = reads_each_step();
  signals.model_has_convolutions = true;
  signals.model_convolution_parameters = 7'500'000;
  EXPECT_NEAR(*fired("tf32-off", signals).share, 0.25 * 0.96 * 0.9 / 2, 1e-9);
  signals.convolutions_tf32 = false;
  EXPECT_NEAR(*fired("tf32-off", signals).share, 0.96 * 0.9 / 2, 1e-9);
  signals.convolutions_tf32.reset();
  signals.model_convolution_parameters.reset();
  EXPECT_THAT(missing("tf32-off", signals), HasSubstr("convolutions"));
}

TEST(DeviceTime, GapsThatNobodyMeasuresAreNotCalledHealthy) {
  Signals signals = healthy_gpu();
  signals.device_busy = 0.97;
  signals.device_kept_up = 0.9;
  set_effective(signals, "precision.amp", "off");
  const Finding finding = fired("launch-bound", signals);
  EXPECT_FALSE(finding.share);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_THAT(missing("precision-fp32", signals), HasSubstr("how long kernels run"));
  signals.kernel_time_known = true;  // a profiler's window saw them
  EXPECT_TRUE(silent("launch-bound", signals));
  fired("precision-fp32", signals);
  signals.kernel_time_known = false;
  signals.device_kept_up = 0.1;
  EXPECT_TRUE(silent("launch-bound", signals));
}

TEST(DeviceTime, WhatNobodyMeasuredDoesNotLeadTheLaunchesThatItIsAPartOf) {
  Signals signals = healthy_gpu();
  signals.step = StepShares{.compute = 0.3, .optimizer = 0.7};
  signals.optimizer = OptimizerFacts{.name = "AdamW", .fused = false, .foreach = false, .tensors = 240};
  set_effective(signals, "optimizer.fused", "false");
  signals.device_busy = 0.97;
  signals.device_kept_up = 0.9;
  EXPECT_FALSE(fired("optimizer-not-fused", signals).share);
  const Diagnosis diagnosis = diagnose(signals);
  EXPECT_EQ(diagnosis.findings.front().id, "launch-bound");
  EXPECT_EQ(diagnosis.verdict, Verdict::kLaunchBound);
  signals.kernel_time_known = true;
  signals.device_busy = 0.2;
  EXPECT_GT(*fired("optimizer-not-fused", signals).share, 0.4);
  EXPECT_EQ(diagnose(signals).findings.front().id, "launch-bound") << "all of the launches are more";
}

TEST(DeviceTime, AHostThatWaitsForADeviceSaysNothingOfWhatItComputes) {
  Signals signals = healthy_gpu();
  set_effective(signals, "precision.amp", "off");
  signals.device_busy = 0.99;
  signals.step = StepShares{.compute = 0.01, .sync = 0.99};  // the loss is read in each step
  const Diagnosis diagnosis = diagnose(signals);
  ASSERT_EQ(diagnosis.verdict, Verdict::kComputeBound);
  EXPECT_THAT(answer(diagnosis), ::testing::StartsWith("Your GPU computes in fp32 and leaves its faster units unused"));
}

TEST(Throttled, TheLimitOfTheBoardIsNoFault) {
  Signals signals = healthy_gpu();
  signals.gpu.throttled = 0.95;
  signals.gpu.throttled_by_power_only = true;
  signals.gpu.throttle_reasons = "power limit";
  signals.gpu.clock_mhz = 1400;
  signals.gpu.clock_max_mhz = 1980;
  signals.gpu.power_limit_w = signals.gpu.power_default_limit_w = 700;
  const Finding finding = fired("throttled", signals);
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_FALSE(finding.share);
  signals.gpu.power_limit_w = 350;  // lowered by somebody
  EXPECT_GE(fired("throttled", signals).severity, Severity::kWarning);
  signals.gpu.power_limit_w = 700;
  signals.gpu.throttled_by_power_only = false;  // heat
  EXPECT_GE(fired("throttled", signals).severity, Severity::kWarning);
}

}  // namespace
}  // namespace unidle::diagnose::testing
