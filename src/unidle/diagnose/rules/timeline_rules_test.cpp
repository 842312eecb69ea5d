// Rules that read a profiler's trace: what the device did alone, and what the host did while the device idled.
#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <utility>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

/// A trace of two steps without a record: the device is busy except for the tested part.
Signals of_trace(double DeviceTimeline::*part, double share, bool alone = true) {
  Signals signals;
  signals.device_kind = "cuda";
  signals.wall_s = 0.1;
  signals.time.train = 0.1;
  signals.steps = 2;
  signals.step_s = 0.05;
  signals.step = StepShares{.compute = 1};
  signals.device_busy = 1 - share;
  DeviceTimeline timeline;
  timeline.idle = share;
  timeline.*part = share;
  timeline.kernels = 500;
  timeline.launch_every_s = 2e-4;
  timeline.alone = alone;
  signals.timeline = timeline;
  signals.kernels = KernelFacts{1e-5, 5e-6, 0};
  return signals;
}

constexpr auto kIdleRules = std::to_array<std::pair<std::string_view, double DeviceTimeline::*>>({
    {"idle-for-input", &DeviceTimeline::input},
    {"compiles-while-idle", &DeviceTimeline::compile},
    {"allocates-while-idle", &DeviceTimeline::allocator},
    {"host-elsewhere", &DeviceTimeline::host},
    {"queued-work-waits", &DeviceTimeline::queued},
    {"communication-bound", &DeviceTimeline::communication_alone},
});

TEST(TimelineRules, FireForTheirPartOnly) {
  for (const auto& [id, part] : kIdleRules) {
    EXPECT_DOUBLE_EQ(*fired(id, of_trace(part, 0.4)).share, 0.4) << id;
    EXPECT_EQ(fired(id, of_trace(part, 0.4)).severity, Severity::kCritical) << id;
    EXPECT_EQ(fired(id, of_trace(part, 0.12, false)).severity, Severity::kWarning) << id;
    EXPECT_TRUE(silent(id, of_trace(part, 0.08))) << id;
    EXPECT_TRUE(silent(id, of_trace(part, 0))) << id;
    EXPECT_TRUE(silent(id, of_trace(&DeviceTimeline::unseen, 0.9))) << id;
    EXPECT_NE(missing(id, Signals{}), "") << id;
    const Diagnosis diagnosis = diagnose::diagnose(of_trace(part, 0.4));
    ASSERT_EQ(diagnosis.findings.size(), 1U) << id;
    EXPECT_EQ(diagnosis.findings[0].id, id);
    EXPECT_NE(diagnosis.verdict, Verdict::kUnknown) << id;
    EXPECT_NE(answer(diagnosis).find("40 %"), std::string::npos) << answer(diagnosis);
  }
}

TEST(TimelineRules, ATraceByItselfNeedsNoFiveSteps) {
  constexpr auto kRules = std::to_array<std::pair<std::string_view, double DeviceTimeline::*>>({
      {"launch-bound", &DeviceTimeline::launch},
      {"sync-each-step", &DeviceTimeline::sync},
      {"transfer-not-overlapped", &DeviceTimeline::copies_alone},
      {"transfer-not-overlapped", &DeviceTimeline::copy_calls},
  });
  for (const auto& [id, part] : kRules) {
    EXPECT_DOUBLE_EQ(*fired(id, of_trace(part, 0.4)).share, 0.4) << id;
    EXPECT_TRUE(silent(id, of_trace(part, 0.08))) << id;
    EXPECT_NE(missing(id, of_trace(part, 0.4, false)), "") << id;  // for a trace of a recorded run, the steps decide
  }
  Signals signals = of_trace(&DeviceTimeline::input, 0.4);
  set_effective(signals, "loader.workers", "0");
  EXPECT_DOUBLE_EQ(*fired("loader-no-workers", signals).share, 0.4);
  EXPECT_TRUE(silent("idle-for-input", signals));
}

TEST(TimelineRules, WhatAWindowFoundIsNoLaunching) {
  Signals signals = healthy_gpu();
  signals.device_busy = 0.3;
  const double launching = *make_context(signals, {}).launching;
  signals.timeline = DeviceTimeline{};
  signals.timeline->host = 0.2;
  EXPECT_NEAR(*make_context(signals, {}).launching, launching - 0.2, 1e-9);
}

TEST(TimelineRules, WhatNoEventNamesIsCalledSo) {
  Signals signals = of_trace(&DeviceTimeline::host, 0.4);
  EXPECT_NE(answer(diagnose::diagnose(signals)).find("look at the work that the trace names"), std::string::npos);
  signals.timeline->unnamed = 0.3;
  const std::string said = answer(diagnose::diagnose(signals));
  EXPECT_NE(said.find("idles 40 % of the time while the host launches nothing"), std::string::npos) << said;
  EXPECT_NE(said.find("profile with with_stack=True"), std::string::npos) << said;
  EXPECT_EQ(said.find("names"), std::string::npos) << said;
  signals.timeline->python_frames = true;  // was already profiled so
  EXPECT_EQ(answer(diagnose::diagnose(signals)).find("with_stack=True"), std::string::npos);
}

TEST(TimelineRules, TheBoundOfATraceIsOfItsWindow) {
  Signals signals = of_trace(&DeviceTimeline::launch, 0.87);
  signals.time.train = 0.088;  // the steps; the rest of the trace lies outside of the window
  signals.time.other = 0.012;
  const std::string said = answer(diagnose::diagnose(signals));
  EXPECT_NE(said.find(", at best 7.7x as fast."), std::string::npos) << said;
}

TEST(TimelineRules, SmallCausesAreNamedAsSuch) {
  Signals signals = of_trace(&DeviceTimeline::launch, 0.08);
  signals.step.reset();
  signals.step_s.reset();
  signals.device_busy = 0.86;
  signals.timeline->host = 0.05;
  EXPECT_EQ(answer(diagnose::diagnose(signals)),
            "Your GPU is 86 % busy, and no cause alone makes it idle for more than 8.0 % of the time.");
  signals.timeline->unseen = 0.09;
  EXPECT_EQ(answer(diagnose::diagnose(signals)), "Your GPU is 86 % busy; what was read does not show why.");
  signals.timeline = DeviceTimeline{};
  signals.timeline->alone = true;
  signals.timeline->kernels = 1;
  signals.device_busy = 0.93;
  signals.timeline->idle = signals.timeline->unseen = 0.07;
  EXPECT_EQ(answer(diagnose::diagnose(signals)), "Your GPU is 93 % busy; what was read does not show why.");
  signals.timeline->idle = signals.timeline->unseen = 0;
  signals.device_busy = 1;
  EXPECT_EQ(answer(diagnose::diagnose(signals)), "Your GPU is 100 % busy: nothing in this trace makes it wait.");
}

TEST(TimelineRules, ABusyDeviceIsHealthyButNotOfAFewKernels) {
  Signals signals = of_trace(&DeviceTimeline::unseen, 0.03);
  EXPECT_EQ(diagnose::diagnose(signals).verdict, Verdict::kHealthy);
  signals.timeline->kernels = 1;
  EXPECT_EQ(diagnose::diagnose(signals).verdict, Verdict::kUnknown);
  signals = of_trace(&DeviceTimeline::unseen, 0.5);
  EXPECT_EQ(diagnose::diagnose(signals).verdict, Verdict::kUnknown);
}

}  // namespace
}  // namespace unidle::diagnose::testing
