// precision-fp32, layout-not-channels-last, sync-each-step, batch-too-small, padding-waste.
#include <gmock/gmock.h>

#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::HasSubstr;

Signals fp32_gpu() {
  Signals signals = healthy_gpu();
  set_effective(signals, "precision.amp", "off");
  signals.convolutions_tf32 = false;
  return signals;
}

TEST(PrecisionFp32, ProposesWhatTheDeviceHas) {
  Signals signals = fp32_gpu();
  EXPECT_EQ(fix_of(fired("precision-fp32", signals), "precision.amp")->to, "bf16");
  signals.gpu_capability = "7.5";
  EXPECT_EQ(fix_of(fired("precision-fp32", signals), "precision.amp")->to, "fp16");
  signals.gpu_capability = "6.1";
  EXPECT_TRUE(silent("precision-fp32", signals));
}

TEST(PrecisionFp32, OnACpuOnlyWithUnits) {
  Signals signals = healthy_cpu();
  EXPECT_TRUE(silent("precision-fp32", signals));  // measured: no such units
  signals.cpu_bf16 = true;
  const Finding finding = fired("precision-fp32", signals);
  EXPECT_EQ(finding.severity, Severity::kInfo) << "programs gain or lose";
  EXPECT_FALSE(finding.share || finding.speedup_bound);
  EXPECT_EQ(fix_of(finding, "precision.amp")->knob_class, knobs::KnobClass::kNumeric);
  signals.cpu_bf16.reset();
  EXPECT_THAT(missing("precision-fp32", signals), HasSubstr("units"));
}

TEST(PrecisionFp32, AnIdleGpuGainsLittle) {
  Signals signals = fp32_gpu();
  signals.device_busy = 0.2;
  EXPECT_TRUE(silent("precision-fp32", signals));
}

TEST(PrecisionFp32, MissingAndOn) {
  Signals signals = fp32_gpu();
  signals.settings.erase("precision.amp");
  EXPECT_THAT(missing("precision-fp32", signals), HasSubstr("precision"));
  signals = fp32_gpu();
  signals.gpu_capability.reset();
  EXPECT_THAT(missing("precision-fp32", signals), HasSubstr("units"));
  EXPECT_TRUE(silent("precision-fp32", healthy_gpu()));
}

TEST(PrecisionFp32, AModelWhoseParametersAreInSixteenBitsNeedsNone) {
  Signals signals = fp32_gpu();
  set_effective(signals, "precision.tf32", "false");
  EXPECT_FALSE(silent("tf32-off", signals));
  signals.model_dtype = "bfloat16";
  EXPECT_TRUE(silent("precision-fp32", signals));
  EXPECT_TRUE(silent("tf32-off", signals));
}

TEST(PrecisionFp32, AutocastLeavesDoublePrecisionAsItIs) {
  Signals signals = fp32_gpu();
  signals.model_dtype = "float64";
  EXPECT_TRUE(silent("precision-fp32", signals));
  EXPECT_THAT(fired("precision-fp64", signals).evidence.front(), HasSubstr("float64"));
}

TEST(SettingIgnored, AModelInTheFormatAskedForNeedsNoAutocast) {
  Signals signals = fp32_gpu();
  signals.settings["precision.amp"] = {"bf16", "--dtype", "off"};
  EXPECT_FALSE(silent("setting-ignored", signals));
  signals.model_dtype = "bfloat16";
  EXPECT_TRUE(silent("setting-ignored", signals));
  signals.model_dtype = "float16";
  EXPECT_FALSE(silent("setting-ignored", signals));
}

TEST(SettingIgnored, AValueThatTheKnobDoesNotHaveIsNotProposed) {
  Signals signals = fp32_gpu();
  signals.settings["precision.amp"] = {"sixteen", "a.yaml:3", "off"};
  EXPECT_FALSE(fired("setting-ignored", signals).fixes.front().to);
  signals.settings["precision.amp"] = {"BF16", "a.yaml:3", "off"};
  EXPECT_EQ(fired("setting-ignored", signals).fixes.front().to, "bf16");
}

TEST(PrecisionEmulated, AModelInBf16NeedsNoAutocastForIt) {
  Signals signals = fp32_gpu();
  signals.gpu_capability = "7.5";
  EXPECT_TRUE(silent("precision-emulated", signals));
  signals.model_dtype = "bfloat16";
  EXPECT_TRUE(fired("precision-emulated", signals).fixes.front().in_code);
}

TEST(PrecisionFp32, AModelInSixteenBitsUsesTheUnitsWithoutAutocast) {
  Signals signals = fp32_gpu();
  set_effective(signals, "precision.tf32", "false");
  signals.kernels = KernelFacts{1e-4, std::nullopt, 0.9};
  EXPECT_TRUE(silent("precision-fp32", signals));
  EXPECT_TRUE(silent("tf32-off", signals));
  signals.kernels->matrix_share = 0;  // measured: unused
  EXPECT_THAT(fired("precision-fp32", signals).evidence.back(), HasSubstr("matrix units"));
  EXPECT_THAT(fired("tf32-off", signals).evidence.back(), HasSubstr("matrix units"));
  set_effective(signals, "precision.tf32", "true");
  signals.kernels->matrix_share = 0.9;  // by TF32: 16-bit formats are faster still
  EXPECT_TRUE(fix_of(fired("precision-fp32", signals), "precision.amp"));
}

TEST(PrecisionEmulated, OnAGpuBeforeAmpere) {
  Signals signals = fp32_gpu();
  set_effective(signals, "precision.amp", "bf16");
  EXPECT_TRUE(silent("precision-emulated", signals));
  for (const auto& [capability, format] : {std::pair{"7.5", "fp16"}, std::pair{"6.1", "off"}}) {
    signals.gpu_capability = capability;
    EXPECT_EQ(fix_of(fired("precision-emulated", signals), "precision.amp")->to, format);
  }
  signals.gpu_capability.reset();
  EXPECT_THAT(missing("precision-emulated", signals), HasSubstr("units"));
}

TEST(LayoutNotChannelsLast, OnACpuByTheKindOfConvolution) {
  Signals signals = healthy_cpu();
  set_effective(signals, "layout.channels_last", "false");
  EXPECT_EQ(fired("layout-not-channels-last", signals).severity, Severity::kWarning);
  EXPECT_FALSE(fired("layout-not-channels-last", signals).share.has_value());
  signals.model_has_depthwise = false;
  EXPECT_EQ(fired("layout-not-channels-last", signals).severity, Severity::kInfo);
  signals.model_has_depthwise = true;
  EXPECT_NEAR(*fired("layout-not-channels-last", signals).share, 0.81 * (1 - 1 / 1.35), 1e-9);
}

TEST(LayoutNotChannelsLast, OnAGpuInLowPrecision) {
  Signals signals = healthy_gpu();
  set_effective(signals, "layout.channels_last", "false");
  EXPECT_EQ(fired("layout-not-channels-last", signals).severity, Severity::kWarning);
  set_effective(signals, "precision.amp", "off");
  EXPECT_TRUE(silent("layout-not-channels-last", signals));
}

TEST(LayoutNotChannelsLast, NeedsConvolutions) {
  Signals signals = healthy_cpu();
  set_effective(signals, "layout.channels_last", "false");
  signals.model_has_convolutions = false;
  EXPECT_TRUE(silent("layout-not-channels-last", signals));
  signals.model_has_convolutions.reset();
  EXPECT_THAT(missing("layout-not-channels-last", signals), HasSubstr("convolutions"));
  signals.model_has_convolutions = true;
  signals.settings.erase("layout.channels_last");
  EXPECT_THAT(missing("layout-not-channels-last", signals), HasSubstr("layout"));
}

Signals syncing(Signals signals, double share) {
  signals.step = StepShares{.input = 0.01, .compute = 0.94 - share, .sync = share, .optimizer = 0.05};
  signals.syncs_per_step = 2;
  return signals;
}

TEST(SyncEachStep, OnAGpuNoMoreThanItsIdleTime) {
  Signals signals = syncing(healthy_gpu(), 0.6);
  signals.device_busy = 0.7;
  const Finding finding = fired("sync-each-step", signals);
  EXPECT_NEAR(*finding.share, 0.3 * 0.9, 1e-9);
  EXPECT_NE(fix_of(finding, "metrics.interval"), nullptr);
  signals.device_busy = 0.95;
  EXPECT_TRUE(silent("sync-each-step", signals));
  signals.device_busy.reset();
  EXPECT_THAT(missing("sync-each-step", signals), HasSubstr("busy"));
}

TEST(SyncEachStep, OnACpuByMeasuredShareAlone) {
  EXPECT_TRUE(silent("sync-each-step", syncing(healthy_cpu(), 0.01)));
  EXPECT_NEAR(*fired("sync-each-step", syncing(healthy_cpu(), 0.4)).share, 0.36, 1e-9);
}

TEST(SyncEachStep, NearMissesAndMissing) {
  Signals signals = syncing(healthy_cpu(), 0.4);
  signals.syncs_per_step = 0.1;
  EXPECT_TRUE(silent("sync-each-step", signals));
  signals.syncs_per_step = 0;
  EXPECT_TRUE(silent("sync-each-step", signals));
  signals.syncs_per_step.reset();
  EXPECT_THAT(missing("sync-each-step", signals), HasSubstr("waits"));
}

Signals small_batch() {
  Signals signals = healthy_gpu();
  signals.gpu_memory_used = 0.15;
  signals.device_busy = 0.3;
  return signals;
}

TEST(BatchTooSmall, GrowsWithinMemory) {
  const Finding finding = fired("batch-too-small", small_batch());
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_FALSE(finding.share.has_value());
  EXPECT_EQ(fix_of(finding, "batch.size")->to, 128);  // 4 x 15 % of memory; 8 x would exceed the target
  EXPECT_EQ(fix_of(finding, "batch.size")->knob_class, knobs::KnobClass::kSemantic);
}

TEST(BatchTooSmall, KeepsTheEffectiveBatchWhereItCan) {
  Signals signals = small_batch();
  set_effective(signals, "batch.accumulation", "6");
  const Finding finding = fired("batch-too-small", signals);
  EXPECT_EQ(fix_of(finding, "batch.size")->to, 96);
  EXPECT_EQ(fix_of(finding, "batch.accumulation")->to, 2);
  EXPECT_EQ(fix_of(finding, "batch.size")->knob_class, knobs::KnobClass::kNumeric);
}

TEST(AccumulationExcess, IsAHintOnACpuThatIsNotFull) {
  Signals signals = small_batch();
  set_effective(signals, "batch.accumulation", "4");
  EXPECT_EQ(fired("accumulation-excess", signals).severity, Severity::kWarning);
  signals = healthy_cpu();
  set_effective(signals, "batch.accumulation", "4");
  signals.host_memory_used = 0.1;
  signals.device_busy = 0.6;
  EXPECT_EQ(fired("accumulation-excess", signals).severity, Severity::kInfo);
  signals.device_busy = 0.98;
  EXPECT_TRUE(silent("accumulation-excess", signals));
}

TEST(AccumulationExcess, IsAWarningWhereMicroBatchesPayForCalls) {
  Signals signals = healthy_cpu();
  set_effective(signals, "batch.accumulation", "4");
  signals.host_memory_used = 0.1;
  signals.device_busy = 0.98;
  signals.operations = OperationFacts{90, 8e-6, 0, 0, std::nullopt, 0, 0};
  EXPECT_EQ(fired("accumulation-excess", signals).severity, Severity::kWarning);
  signals.operations->seconds_each = 60e-6;
  EXPECT_TRUE(silent("accumulation-excess", signals));
}

TEST(BatchTooSmall, NearMissesAreSilent) {
  Signals signals = small_batch();
  signals.gpu_memory_used = 0.55;
  EXPECT_TRUE(silent("batch-too-small", signals));
  signals = small_batch();
  signals.device_busy = 0.55;
  EXPECT_TRUE(silent("batch-too-small", signals));
  signals = small_batch();
  set_input(signals, 0.4);
  EXPECT_TRUE(silent("batch-too-small", signals));
}

TEST(BatchTooSmall, MissingIsNotZero) {
  EXPECT_THAT(missing("batch-too-small", healthy_cpu()), HasSubstr("device is a CPU"));
  Signals signals = small_batch();
  signals.gpu_memory_used = 0;
  EXPECT_FALSE(fired("batch-too-small", signals).evidence.empty());
  signals.device_busy.reset();
  EXPECT_THAT(missing("batch-too-small", signals), HasSubstr("busy"));
}

TEST(PaddingWaste, BatchesEndAfterTheirLongestSequenceWhereTheyCan) {
  Signals signals = healthy_cpu();
  signals.padding = PaddingFacts{30, 100, 60, true, "train.py:20"};
  const Finding cut = fired("padding-waste", signals);
  EXPECT_EQ(fix_of(cut, "batch.trim_padding")->to, true);
  EXPECT_EQ(cut.where, "train.py:20");
  signals.padding->cuts = false;
  EXPECT_TRUE(fix_of(fired("padding-waste", signals), "batch.trim_padding")->in_code);
}

TEST(PaddingWaste, BucketsWhereBatchesAlreadyEndThere) {
  Signals signals = healthy_cpu();
  for (const std::optional<double> longest : {std::optional<double>(), std::optional(95.0)}) {
    signals.padding = PaddingFacts{30, 100, longest, true, ""};
    const Finding finding = fired("padding-waste", signals);
    EXPECT_TRUE(finding.fixes.empty());
    EXPECT_THAT(finding.proposes, HasSubstr("similar length"));
  }
  signals.padding->longest = 80;
  set_effective(signals, "batch.trim_padding", "true");
  EXPECT_TRUE(fired("padding-waste", signals).fixes.empty()) << "the first batches were not trimmed yet";
}

}  // namespace
}  // namespace unidle::diagnose::testing
