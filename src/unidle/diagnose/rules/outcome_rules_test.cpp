// run-failed, run-timed-out, device-unused, setting-ignored.
#include <gmock/gmock.h>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTraceback =
    "epoch 2 loss 0.1\nTraceback (most recent call last):\n"
    "  File \"/home/a/train.py\", line 78, in main\n    json.dump(x, f)\n"
    "  File \"/usr/lib/python3.11/json/__init__.py\", line 179, in dump\n    for chunk in iterable:\n"
    "TypeError: Object of type float32 is not JSON serializable\n";

TEST(RunFailed, ExitCodeAndSignal) {
  Signals signals = healthy_cpu();
  EXPECT_TRUE(silent("run-failed", signals));
  signals.exit_code = 3;
  EXPECT_THAT(fired("run-failed", signals).evidence, Contains(HasSubstr("exit code 3")));
  signals.exit_code = 0;
  signals.exit_signal = 11;
  EXPECT_THAT(fired("run-failed", signals).evidence, Contains(HasSubstr("signal 11")));
}

TEST(RunFailed, ARankThatWasKilledGoesBeforeThoseWhoLostIt) {
  Signals signals = healthy_cpu();
  signals.exit_code = 1;
  signals.exception = "RuntimeError: [pair.cc:538] Read error [127.0.0.1]:4711: Connection reset by peer";
  signals.steps_after_exception = 0;
  signals.error_tail =
      "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 1)\n  exitcode  : -9 (pid: 753)\n"
      "  traceback : Signal 9 (SIGKILL) received by PID 753\n";
  const Finding finding = fired("run-failed", signals);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("rank 3 failed first, ended by signal 9")));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("memory runs out")));
  EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("Connection reset"))));
  signals.exception = "ValueError: bad sample";
  EXPECT_THAT(fired("run-failed", signals).evidence, Contains(HasSubstr("bad sample")));
}

TEST(RunFailed, ATracebackCountsWhateverTheLastLineClaims) {
  Signals signals = healthy_cpu();
  signals.output_tail = std::string(kTraceback) + "Training finished successfully\n";
  const Finding finding = fired("run-failed", signals);
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(finding.where, "/home/a/train.py:78");
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("TypeError: Object of type float32")));
}

TEST(RunFailed, TrainingThatGoesOnMakesItAHint) {
  Signals signals = healthy_cpu();
  signals.output_tail = std::string(kTraceback) + "epoch 3 loss 0.09\n";
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kInfo);
  signals.exception = "TypeError: Object of type float32 is not JSON serializable";
  signals.steps_after_exception = 0;  // measured: no step followed it
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kCritical);
  signals.output_tail = kTraceback;
  signals.steps_after_exception = 40;
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kInfo);
  signals.exit_code = 1;
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kCritical);
}

TEST(RunFailed, WithoutOutputTheInstrumentationSpeaks) {
  Signals signals = healthy_cpu();
  signals.exception = "ValueError: bad sample";
  signals.steps_after_exception = 0;
  EXPECT_THAT(fired("run-failed", signals).evidence, Contains(HasSubstr("bad sample")));
}

TEST(OutOfMemory, TheKernelsCountTellsWhoKilled) {
  Signals signals = healthy_cpu();
  signals.exit_code.reset();
  signals.exit_signal = 9;
  signals.outcome = Outcome::kFailed;
  signals.host_memory_used.reset();
  signals.oom_kills = 0;
  EXPECT_TRUE(silent("out-of-memory", signals)) << "somebody else killed it";
  signals.oom_kills = 1;
  const Finding finding = fired("out-of-memory", signals);
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("the kernel killed 1 process(es) for lack of memory")));
  signals.exit_signal.reset();
  signals.exit_code = 1;  // a helper was killed, and the program gave up
  fired("out-of-memory", signals);
  signals.exit_code = 0;
  signals.outcome = Outcome::kCompleted;
  EXPECT_TRUE(silent("out-of-memory", signals)) << "a neighbour in the same group";
}

// A program that halves its batch size until it fits, and trains.
TEST(OutOfMemory, WhatTrainingWentOnWithIsTold) {
  Signals signals = healthy_cpu();
  signals.gpu.ooms = 4;
  signals.gpu.oom_samples = 1024;
  signals.loader.emplace().batch_size = 64;
  signals.gpu.oom_steps_before = 4;
  signals.batch_samples = 64;
  signals.steps = 68;
  signals.settings["batch.size"] = {.configured = "1024", .configured_at = "train.py:1", .effective = "64"};
  const Finding finding = fired("out-of-memory", signals);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_THAT(finding.evidence,
              ElementsAre("memory ran out 4 times",
                          "batches of 1024 samples did not fit into memory; training went on with 64"));
  ASSERT_EQ(finding.fixes.size(), 1U);
  EXPECT_EQ(finding.fixes[0].from, 1024);
  EXPECT_EQ(finding.fixes[0].to, 64);
  EXPECT_TRUE(silent("setting-ignored", signals)) << "the program changed it for want of memory";
  signals.gpu.ooms = 0;
  EXPECT_FALSE(silent("setting-ignored", signals));
  signals.gpu.ooms = 4;
  signals.steps = 4;
  EXPECT_THAT(fired("out-of-memory", signals).evidence, Contains("no step was trained after it"));
  signals.steps = 68;
  signals.batch_samples = 1024;  // the batch was skipped
  EXPECT_THAT(fired("out-of-memory", signals).evidence, Contains("training went on after it"));
}

TEST(OutOfMemory, AKillThatNobodyExplainsIsNotCalledEnoughMemory) {
  Signals signals = healthy_cpu();
  signals.exit_signal = 9;
  signals.outcome = Outcome::kFailed;
  signals.oom_kills.reset();
  signals.host_memory_used.reset();
  EXPECT_FALSE(silent("out-of-memory", signals));
  signals.host_memory_used = 0.95;
  fired("out-of-memory", signals);
}

// Training goes on after the first error and ends with the second one, whatever the last line claims.
TEST(RunFailed, OfSeveralErrorsTheLastOneCounts) {
  Signals signals = healthy_cpu();
  signals.exit_code = 0;
  signals.exception = "KeyError: 'a'";
  signals.steps_after_exception = 40;
  signals.output_tail = std::string(kTraceback) + "Training finished successfully\n";
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kCritical) << "the printed one was not seen otherwise";
  signals.output_tail = std::string(kTraceback) + "epoch 3 loss 0.09\n";
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kInfo);
  signals.steps_after_exception = 0;
  signals.earlier_exceptions = 2;
  const Finding finding = fired("run-failed", signals);
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("KeyError: 'a'")));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("2 other errors")));
}

TEST(RunFailed, ProgressOnTheOtherStreamSaysNothing) {
  Signals signals = healthy_cpu();
  signals.output_tail = kTraceback;
  signals.error_tail = "45%| | 9/20 [00:01<00:02, 12.5it/s]\n";
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kCritical);
  signals.output_tail = std::string(kTraceback) + "epoch 3 loss 0.09\n";
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kInfo);
  signals.error_tail = "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n";
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kCritical);
}

TEST(RunFailed, AThreadThatFailsEndsNoRunWhoseExitCodeIsZero) {
  Signals signals = healthy_cpu();
  signals.error_tail = std::string("Exception in thread Thread-1 (sends):\n") + kTraceback;
  signals.exit_code.reset();
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kCritical) << "its exit code is not known";
  signals.exit_code = 0;
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kInfo);
  signals.exit_code = 1;
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kCritical);
  signals.exit_code = 0;
  signals.error_tail = kTraceback;
  EXPECT_EQ(fired("run-failed", signals).severity, Severity::kCritical) << "the main thread's, however it ends";
}

TEST(RunFailed, OurOwnErrorLineAtTheEnd) {
  Signals signals = healthy_cpu();
  signals.output_tail = "step 1\nunidle: data/a.png: is no picture\n\n";
  EXPECT_THAT(fired("run-failed", signals).evidence, Contains(HasSubstr("is no picture")));
  signals.output_tail = "unidle: a warning\nstep 1\n";
  EXPECT_TRUE(silent("run-failed", signals));
}

TEST(RunFailed, StoppedOnRequestOrUnknown) {
  Signals signals = healthy_cpu();
  signals.outcome = Outcome::kStopped;
  signals.exit_signal = 2;
  EXPECT_TRUE(silent("run-failed", signals));
  Signals nothing;
  EXPECT_THAT(missing("run-failed", nothing), HasSubstr("ended"));
}

TEST(RunTimedOut, ByOutcome) {
  Signals signals = healthy_cpu();
  EXPECT_TRUE(silent("run-timed-out", signals));
  signals.outcome = Outcome::kTimedOut;
  EXPECT_EQ(fired("run-timed-out", signals).severity, Severity::kCritical);
  EXPECT_THAT(missing("run-timed-out", Signals{}), HasSubstr("ended"));
}

TEST(DeviceUnused, AGpuIsThereOrWasAskedFor) {
  Signals signals = healthy_cpu();
  EXPECT_TRUE(silent("device-unused", signals));  // no GPU, none asked for
  signals.gpus = 2;
  EXPECT_THAT(fired("device-unused", signals).evidence, Contains(HasSubstr("GPUs that this machine has: 2")));
  signals.gpus = 0;
  signals.settings["device"] = {"cuda", "a.yaml:3", "cpu"};
  const Finding finding = fired("device-unused", signals);
  EXPECT_EQ(finding.where, "a.yaml:3");
  EXPECT_THAT(fix_of(finding, "device")->reason, HasSubstr("not visible"));
  EXPECT_TRUE(silent("device-unused", healthy_gpu()));
}

TEST(DeviceUnused, TheCpuWasChosenForThisRun) {
  const std::pair<std::string, std::string> hidden = {"CUDA_VISIBLE_DEVICES", "cpu"};
  struct Case {
    const char* what;
    account::KnobReading device;
    Severity severity;
  };
  const Case cases[] = {
      {"a variable hides the GPUs", {{}, "", "cpu", {hidden}}, Severity::kInfo},
      {"a word of the command", {"cpu", "--device", "cpu"}, Severity::kInfo},
      {"a file may be an oversight", {"cpu", "a.yaml:3", "cpu"}, Severity::kCritical},
      {"somebody asks for a GPU all the same", {"cuda", "--device", "cpu", {hidden}}, Severity::kCritical},
      {"nobody says anything", {{}, "", "cpu"}, Severity::kCritical},
  };
  for (const Case& one : cases) {
    Signals signals = healthy_cpu();
    signals.gpus = 2;
    signals.settings["device"] = one.device;
    const Finding finding = fired("device-unused", signals);
    EXPECT_EQ(finding.severity, one.severity) << one.what;
    const Verdict verdict = diagnose(signals).verdict;
    EXPECT_EQ(verdict, one.severity == Severity::kInfo ? Verdict::kHealthy : Verdict::kDeviceUnused) << one.what;
    if (!one.device.environment.empty()) {
      EXPECT_THAT(finding.evidence, Contains("CUDA_VISIBLE_DEVICES hides every GPU from the program")) << one.what;
    }
  }
}

TEST(DeviceUnused, MissingIsNotZero) {
  Signals signals = healthy_cpu();
  signals.gpus.reset();
  EXPECT_THAT(missing("device-unused", signals), HasSubstr("GPUs"));
  signals.device_kind = "unknown";
  EXPECT_THAT(missing("device-unused", signals), HasSubstr("device"));
}

TEST(SettingIgnored, NamesFileAndLine) {
  Signals signals = healthy_cpu();
  EXPECT_TRUE(silent("setting-ignored", signals));
  signals.cpu_bf16 = true;
  signals.settings["precision.amp"] = {"true", "config.yaml:12", "off"};
  const Finding finding = fired("setting-ignored", signals);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_EQ(finding.where, "config.yaml:12");
  EXPECT_EQ(fix_of(finding, "precision.amp")->from, "off");
  EXPECT_EQ(fix_of(finding, "precision.amp")->to, "bf16") << "what the knob takes, not the switch";
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("config.yaml:12")));
}

TEST(SettingIgnored, MoreWorkersThanARunNeedsAreAHint) {
  Signals signals = healthy_cpu();
  signals.settings["loader.workers"] = {"4", "train.py:7", "2"};
  EXPECT_EQ(fired("setting-ignored", signals).severity, Severity::kInfo);
  EXPECT_TRUE(fired("setting-ignored", signals).fixes.empty());
  signals.settings["loader.workers"] = {"2", "train.py:7", "4"};
  EXPECT_EQ(fired("setting-ignored", signals).severity, Severity::kWarning) << "it has more than are wanted";
  Signals waiting = waiting_cpu(0.6);
  waiting.settings["loader.workers"] = {"4", "train.py:7", "2"};
  EXPECT_EQ(fix_of(fired("setting-ignored", waiting), "loader.workers")->to, 4);
}

TEST(SettingIgnored, ABatchSizeInTheProgramIsAHint) {
  Signals signals = healthy_cpu();
  signals.loader.emplace().batch_size = 4;
  signals.settings["batch.size"] = {"30", "train.py:37", "4"};
  EXPECT_EQ(fired("setting-ignored", signals).severity, Severity::kInfo) << "it may be for a GPU";
  EXPECT_TRUE(fired("setting-ignored", signals).fixes.empty());
  signals.settings["batch.size"] = {"30", "train.yaml:3", "4"};
  EXPECT_EQ(fired("setting-ignored", signals).severity, Severity::kWarning);
}

TEST(SettingIgnored, ThreadsMayBeThoseOfSomethingElse) {
  Signals signals = healthy_cpu();
  signals.cpus_allowed = 4;
  const auto configured = [&](const char* threads, const char* at) {
    signals.settings["cpu.threads"] = {threads, at, "2"};
  };
  configured("3", "config.yaml:7");
  EXPECT_EQ(fired("setting-ignored", signals).fixes.at(0).knob, "cpu.threads");
  configured("8", "config.yaml:7");
  EXPECT_TRUE(silent("setting-ignored", signals)) << "more than there are CPUs";
  configured("3", "train.py:37");
  EXPECT_TRUE(silent("setting-ignored", signals)) << "of the program's own threads, perhaps";
  signals.settings["cpu.threads"].effective_at = "train.py:40";
  EXPECT_EQ(fired("setting-ignored", signals).fixes.at(0).knob, "cpu.threads") << "overruled by a call";
}

TEST(SettingIgnored, WhatOnlyAGpuHasIsAHintOnACpu) {
  Signals cpu = healthy_cpu();
  cpu.settings["cudnn.benchmark"] = {"true", "train.toml:2", "false"};
  EXPECT_EQ(fired("setting-ignored", cpu).severity, Severity::kInfo);
  Signals gpu = healthy_gpu();
  gpu.settings["cudnn.benchmark"] = cpu.settings["cudnn.benchmark"];
  EXPECT_EQ(fired("setting-ignored", gpu).severity, Severity::kWarning);
}

TEST(SettingIgnored, MixedPrecisionIsNoAdviceForACpuWithoutUnits) {
  Signals signals = healthy_cpu();
  signals.cpu_bf16 = false;
  signals.settings["precision.amp"] = {"true", "config.yaml:12", "off"};
  const Finding finding = fired("setting-ignored", signals);
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_THAT(finding.fixes, ::testing::IsEmpty());
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("no units for 16-bit formats")));
  signals.settings["precision.amp"] = {"off", "config.yaml:12", "bf16"};  // in effect, and slower
  EXPECT_EQ(fired("setting-ignored", signals).severity, Severity::kWarning);
}

TEST(SettingIgnored, SpellingsOfOneValueAreEqual) {
  for (const auto& [configured, effective] : std::vector<std::pair<std::string, std::string>>{{"True", "true"},
                                                                                              {"on", "true"},
                                                                                              {"1", "true"},
                                                                                              {"no", "false"},
                                                                                              {"none", "off"},
                                                                                              {"false", "0"},
                                                                                              {"bfloat16", "bf16"},
                                                                                              {"fp32", "off"},
                                                                                              {"8", "8.0"},
                                                                                              {"2e-4", "0.0002"},
                                                                                              {"auto", "cpu"},
                                                                                              {"cuda", "cuda:0"},
                                                                                              {"true", "bf16"},
                                                                                              {"'8'", "8"}}) {
    Signals signals = healthy_cpu();
    signals.settings["knob"] = {configured, "", effective};
    EXPECT_TRUE(silent("setting-ignored", signals)) << configured << " and " << effective;
  }
  for (const auto& [configured, effective] : std::vector<std::pair<std::string, std::string>>{{"true", "off"},
                                                                                              {"8", "0"},
                                                                                              {"bf16", "fp16"},
                                                                                              {"cuda", "cpu"},
                                                                                              {"1", "2"},
                                                                                              {"true", "false"},
                                                                                              {"0", "4"},
                                                                                              {"off", "bf16"}}) {
    Signals signals = healthy_cpu();
    signals.settings["knob"] = {configured, "", effective};
    EXPECT_FALSE(silent("setting-ignored", signals)) << configured << " and " << effective;
  }
}

TEST(SettingIgnored, AnAutomaticValueIsNeverIgnored) {
  Signals signals = healthy_cpu();
  signals.settings["cpu.threads"] = {"0", "a.yaml:9", "4"};
  EXPECT_TRUE(silent("setting-ignored", signals));
  signals.settings["cpu.threads"] = {"2", "a.yaml:9", "4"};
  EXPECT_FALSE(silent("setting-ignored", signals));
}

TEST(SettingIgnored, ABatchSizeOnlyWhereALoaderTellsIt) {
  Signals signals = healthy_cpu();
  signals.settings["batch.size"] = {"64", "a.yaml:2", "16"};
  signals.loader.reset();
  EXPECT_TRUE(silent("setting-ignored", signals));  // an average of steps, not the loader's value
  signals.loader.emplace().batch_size = 16;
  EXPECT_FALSE(silent("setting-ignored", signals));
  set_effective(signals, "batch.accumulation", "4");
  EXPECT_TRUE(silent("setting-ignored", signals));  // 64 in four parts
  set_effective(signals, "batch.accumulation", "2");
  EXPECT_FALSE(silent("setting-ignored", signals));
  signals.parallel = "ddp";
  EXPECT_TRUE(silent("setting-ignored", signals));  // may be meant for all devices
}

TEST(SettingIgnored, NamesTheVariableThatOverrules) {
  Signals signals = healthy_cpu();
  signals.settings["loader.workers"] = {"4", "a.yaml:2", "0", {{"MAX_WORKERS", "8"}, {"NUM_WORKERS", "0"}}};
  EXPECT_THAT(fired("setting-ignored", signals).evidence, Contains(HasSubstr("variable NUM_WORKERS says")));
  signals.settings["loader.workers"] = {"4", "a.yaml:2", "2", {{"NUM_WORKERS", "0"}}, "data.workers"};
  EXPECT_THAT(fired("setting-ignored", signals).evidence, Contains(HasSubstr("names the key data.workers")));
  EXPECT_THAT(fired("setting-ignored", signals).evidence, Not(Contains(HasSubstr("variable"))));
}

TEST(SettingIgnored, UnreadKeys) {
  Signals signals = healthy_cpu();
  signals.unread_keys = {{"title", "a.yaml:1"}};
  EXPECT_EQ(fired("setting-ignored", signals).severity, Severity::kInfo);
  signals.unread_keys.emplace_back("data.loader.workers", "a.yaml:6");
  const Finding finding = fired("setting-ignored", signals);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("data.loader.workers (a.yaml:6)")));
}

TEST(SettingIgnored, AbstainsWhenNothingCanBeCompared) {
  Signals signals = healthy_cpu();
  signals.settings = {{"loader.workers", {"4", "a.yaml:1", std::nullopt}}};
  EXPECT_THAT(missing("setting-ignored", signals), HasSubstr("live program"));
}

}  // namespace
}  // namespace unidle::diagnose::testing
