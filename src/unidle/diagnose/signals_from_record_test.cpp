#include "unidle/diagnose/signals_from_record.h"

#include <gmock/gmock.h>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/scripted_record.h"

namespace unidle::diagnose {
namespace {

using testing::kProcess;
using testing::kStart;
using testing::ms;
using testing::Script;
using testing::write_waiting_run;

class SignalsFromRecord : public testing::ScriptedRecord {};

TEST_F(SignalsFromRecord, PhasesSumToTheWallTime) {
  Script script(folder());
  write_waiting_run(script);
  const Signals signals = read();
  EXPECT_NEAR(signals.wall_s, 15, 1e-9);
  EXPECT_NEAR(signals.time.startup, 2, 1e-9);
  EXPECT_NEAR(signals.time.train, 10, 1e-9);
  EXPECT_NEAR(signals.time.validate, 2, 1e-9);
  EXPECT_NEAR(signals.time.checkpoint, 0.5, 1e-9);
  EXPECT_NEAR(signals.time.other, 0.5, 1e-9);
  EXPECT_EQ(signals.validations, 1);
  EXPECT_EQ(signals.checkpoints, 1);
}

TEST_F(SignalsFromRecord, ACheckpointBeforeAValidationIsSeenToBeOver) {
  Script script(folder());
  write_waiting_run(script);
  script.span("checkpoint", 8200, 700);
  script.writer.flush();
  const Signals signals = read();
  EXPECT_NEAR(signals.time.validate, 1.3, 1e-9);
  EXPECT_NEAR(signals.time.checkpoint, 1.2, 1e-9);
}

TEST_F(SignalsFromRecord, StepsHostAndSettings) {
  Script script(folder());
  write_waiting_run(script);
  const Signals signals = read();
  EXPECT_EQ(signals.steps, 100);
  EXPECT_NEAR(signals.step->input, 0.6, 1e-9);
  EXPECT_NEAR(signals.step->compute, 0.3, 1e-9);
  EXPECT_NEAR(signals.step->optimizer, 0.1, 1e-9);
  EXPECT_NEAR(*signals.step_s, 0.1, 1e-9);
  EXPECT_NEAR(*signals.samples_per_s, 80, 1e-6);
  EXPECT_NEAR(*signals.epochs, 4, 1e-9);
  EXPECT_EQ(signals.batch_samples, 8);
  EXPECT_NEAR(*signals.sample_s, 0.0075, 1e-9);
  EXPECT_FALSE(signals.loader_busy.has_value());  // no workers
  EXPECT_EQ(signals.device_kind, "cpu");
  EXPECT_NEAR(*signals.cpus_used, 1.0, 1e-9);
  EXPECT_NEAR(*signals.device_busy, 0.25, 1e-9);
  EXPECT_EQ(signals.gpus, 0);
  EXPECT_EQ(signals.cpu_bf16, false);
  EXPECT_EQ(signals.model_has_convolutions, true);
  EXPECT_EQ(signals.model_has_depthwise, true);
  EXPECT_EQ(signals.settings.at("loader.workers").configured_at, "naive.yaml:7");
  EXPECT_EQ(signals.effective("loader.workers"), "0");
  EXPECT_FALSE(signals.syncs_per_step.has_value());
}

TEST_F(SignalsFromRecord, TheDiagnosisNamesTheCause) {
  Script script(folder());
  write_waiting_run(script);
  const Diagnosis diagnosis = diagnose_record(folder());
  EXPECT_EQ(diagnosis.verdict, Verdict::kInputBound);
  EXPECT_EQ(diagnosis.outcome, Outcome::kCompleted);
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings.front().id, "loader-no-workers");
  EXPECT_NEAR(*diagnosis.findings.front().share, 0.4, 1e-9);
  EXPECT_EQ(diagnosis.findings.front().where, "naive.yaml:7");
}

TEST_F(SignalsFromRecord, ValidationInsideAStepIsNotTraining) {
  Script script(folder());
  for (int i = 0; i < 10; ++i) {
    script.step(1000 + i * 1000, 1000, 0);
    script.span("validate", 1500 + i * 1000, 400);
  }
  script.end(11000);
  const Signals signals = read();
  EXPECT_NEAR(signals.time.train, 6, 1e-9);
  EXPECT_NEAR(signals.time.validate, 4, 1e-9);
  EXPECT_NEAR(signals.time.startup, 1, 1e-9);
  EXPECT_NEAR(signals.time.other, 0, 1e-9);
}

TEST_F(SignalsFromRecord, AWaitBeforeTheStepBelongsToIt) {
  Script script(folder());
  for (int i = 0; i < 20; ++i) {
    record::Step step;
    step.process = kProcess;
    step.index = i;
    step.t_ns = kStart + ms(1060 + i * 100);
    step.duration_ns = ms(40);
    step.samples = 8;
    step.input_ns = ms(60);
    step.forward_ns = ms(40);
    script.writer.add(step);
  }
  script.end(3000);
  const Signals signals = read();
  EXPECT_NEAR(signals.step->input, 0.6, 1e-9);
  EXPECT_NEAR(*signals.step_s, 0.1, 1e-9);
  EXPECT_NEAR(signals.time.train, 2, 1e-9);
  EXPECT_NEAR(signals.time.startup, 1, 1e-9);
}

/// Twenty steps of 100 ms, a profiler's window, and eighty of 150 ms with CUPTI still attached.
void write_profiled_run(Script& script, std::int64_t attached_after) {
  std::int64_t at = 1000;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t duration = i < 20 ? 100 : 150;
    script.step(at, duration, 10);
    at += duration;
  }
  script.note({{"type", "trace"}, {"status", "recorded"}, {"attached_ns", kStart + ms(1000 + 100 * attached_after)}});
  script.end(at);
}

TEST_F(SignalsFromRecord, StepsThatAProfilerSlowsDoNotCountIntoRates) {
  Script script(folder());
  write_profiled_run(script, 20);
  const Diagnosis diagnosis = diagnose_record(folder());
  EXPECT_NEAR(diagnosis.samples_per_s.value_or(0), 80, 1e-6);
  EXPECT_NEAR(diagnosis.steps_per_s.value_or(0), 10, 1e-6);
  EXPECT_THAT(to_text(diagnosis, 200, false), ::testing::HasSubstr("before the profiler's window"));
  EXPECT_EQ(to_json(diagnosis)["throughput"]["note"], kRatedBeforeWindow);
}

TEST_F(SignalsFromRecord, AWindowThatLeavesFewStepsLeavesNoRate) {
  Script script(folder());
  write_profiled_run(script, 5);  // four of them after warm-up
  const Diagnosis diagnosis = diagnose_record(folder());
  EXPECT_FALSE(diagnosis.samples_per_s);
  EXPECT_FALSE(diagnosis.steps_per_s);
  EXPECT_TRUE(diagnosis.step) << "where the time goes is told all the same";
}

TEST_F(SignalsFromRecord, WarmUpIsLeftOut) {
  Script script(folder());
  for (int i = 0; i < 3; ++i) {
    script.step(i * 1000, 1000, 900);
  }
  for (int i = 0; i < 27; ++i) {
    script.step(3000 + i * 100, 100, 0);
  }
  script.end(6000);
  EXPECT_NEAR(read().step->input, 0, 1e-9);
}

TEST_F(SignalsFromRecord, StepsThatWereNotSeenInFullAreTakenToBeLikeTheOthers) {
  for (const bool input_known : {true, false}) {
    const auto place = folder() / (input_known ? "known" : "unknown");
    Script script(place);
    for (std::int64_t i = 0; i < 400; ++i) {
      if (i % 20 < 2) {
        script.step(i * 100, 100, 20);
        continue;
      }
      record::Step step;
      step.process = kProcess;
      step.index = script.index++;
      step.t_ns = kStart + ms(i * 100);
      step.duration_ns = ms(100);
      step.samples = 8;
      step.sync_ns = i % 20 == 2 ? std::optional(ms(90)) : std::nullopt;  // no complete step has it
      if (input_known) {
        step.input_ns = ms(10);
      }
      script.writer.add(step);
    }
    script.end(40'000);
    const Signals signals = read_signals(record::Reader(place));
    ASSERT_TRUE(signals.step);
    const StepShares& step = *signals.step;
    EXPECT_NEAR(step.sync, 19 * 90.0 / (390 * 100), 1e-9);       // 10 steps are warm-up, and 19 of the others wait
    EXPECT_NEAR(step.input, input_known ? 0.11 : 0.191, 0.002);  // waiting for the device is not waiting for input
    const double left = 1 - step.input - step.sync;
    EXPECT_NEAR(step.compute, left * 70 / 80, 0.002);
    EXPECT_NEAR(step.optimizer, left * 10 / 80, 0.002);
    EXPECT_NEAR(step.other, 0, 0.002);
    EXPECT_NEAR(*signals.samples_per_s, 80, 0.1);
  }
}

TEST_F(SignalsFromRecord, BusyWorkers) {
  Script script(folder());
  for (int i = 0; i < 100; ++i) {
    script.step(i * 100, 100, 50);
  }
  for (int second = 0; second < 10; ++second) {
    for (int thread = 1; thread <= 2; ++thread) {
      script.writer.add(record::SampleWork{kProcess, thread, kStart + ms(second * 1000), 40, ms(900), ms(30), 0});
    }
  }
  script.end(10000);
  const Signals signals = read();
  EXPECT_NEAR(*signals.loader_busy, 0.85, 0.06);
  EXPECT_NEAR(*signals.sample_s, 0.0225, 1e-9);
}

TEST_F(SignalsFromRecord, ACutOffRecordReachesToItsLastTimestamp) {
  Script script(folder());
  for (int i = 0; i < 10; ++i) {
    script.step(1000 + i * 100, 100, 10);
  }
  script.writer.flush();
  const Signals signals = read();
  EXPECT_EQ(signals.outcome, Outcome::kUnknown);
  EXPECT_NEAR(signals.wall_s, 2, 1e-9);
  EXPECT_NEAR(signals.time.train, 1, 1e-9);
}

TEST_F(SignalsFromRecord, AnEmptyRecordIsUnknown) {
  Script script(folder());
  script.writer.flush();
  const Diagnosis diagnosis = diagnose_record(folder());
  EXPECT_EQ(diagnosis.verdict, Verdict::kUnknown);
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_FALSE(diagnosis.step.has_value());
}

TEST_F(SignalsFromRecord, WhyNothingWasSeen) {
  Script script(folder());
  script.note({{"type", "shim"}, {"status", "on"}});
  script.writer.flush();
  EXPECT_EQ(read().blind, "no-training");
  script.note({{"type", "operations"}, {"passes", 19}, {"count", 190}, {"seconds", 1.0}});
  script.writer.flush();
  EXPECT_EQ(read().blind, "no-training");
  script.note({{"type", "operations"}, {"passes", 20}, {"count", 200}, {"seconds", 1.0}});
  script.writer.flush();
  EXPECT_EQ(read().blind, "no-update");
  EXPECT_THAT(to_text(diagnose_record(folder()), 200, false), ::testing::HasSubstr("call unidle.step() at the end"));
  script.note({{"type", "shim"}, {"status", "off"}, {"reason", "no ring"}});
  script.note({{"type", "shim"}, {"status", "on"}});
  script.writer.flush();
  EXPECT_EQ(read().blind, "off");
  script.note({{"type", "unseen"}, {"command", "python -I train.py"}, {"why", "isolated"}});
  script.writer.flush();
  EXPECT_EQ(read().blind, "isolated");
  EXPECT_THAT(to_text(diagnose_record(folder()), 200, false), ::testing::HasSubstr("started with python -I or -E"));
  script.step(0, 100, 0);
  script.writer.flush();
  EXPECT_EQ(read().blind, "") << "steps were seen after all";
}

TEST_F(SignalsFromRecord, WhatTheRunRefusedIsNotProposedAgain) {
  const auto diagnosed = [&](const std::vector<std::string>& statuses) {
    std::filesystem::remove_all(folder());
    Script script(folder());
    testing::write_waiting_run(script);
    for (const std::string& status : statuses) {
      script.note({{"type", "apply"}, {"knob", "loader.workers"}, {"status", status}, {"why", "it is locked"}});
    }
    script.writer.flush();
    return diagnose_record(folder());
  };
  const auto proposes_workers = [](const Diagnosis& diagnosis) {
    return std::ranges::any_of(diagnosis.findings, [](const Finding& finding) {
      return std::ranges::any_of(finding.fixes,
                                 [](const knobs::Change& fix) { return fix.knob == "loader.workers" && !fix.in_code; });
    });
  };
  EXPECT_TRUE(proposes_workers(diagnosed({})));
  EXPECT_TRUE(proposes_workers(diagnosed({"taken", "refused-in-part"}))) << "another data set took it";
  for (const std::string status : {"refused", "refused-in-part"}) {
    const Diagnosis diagnosis = diagnosed({status});
    EXPECT_FALSE(proposes_workers(diagnosis)) << status;
    EXPECT_THAT(to_text(diagnosis, 200, false),
                ::testing::HasSubstr("this run was asked for loader.workers and refused it: it is locked"));
  }
}

TEST_F(SignalsFromRecord, OfSeveralProcessesTheOneWithMostSteps) {
  Script script(folder());
  for (int i = 0; i < 20; ++i) {
    script.step(i * 100, 100, 50);
  }
  for (int i = 0; i < 5; ++i) {
    script.step(i * 100, 100, 0, kProcess + 1);
  }
  script.end(2000);
  EXPECT_EQ(read().steps, 20);
  EXPECT_NEAR(read().step->input, 0.5, 1e-9);
}

TEST_F(SignalsFromRecord, AnExceptionAndTheStepsAfterIt) {
  Script script(folder());
  for (int i = 0; i < 20; ++i) {
    script.step(i * 100, 100, 0);
  }
  script.note({{"type", "exception"}, {"message", "\x1b[1mKeyError\x1b[0m: 'x'"}}, 1450);
  script.note({{"type", "unread"}, {"keys", {{{"key", "loader.workers"}, {"at", "a.yaml:3"}}}}});
  script.end(2000);
  const Signals signals = read();
  EXPECT_EQ(signals.exception, "KeyError: 'x'");
  EXPECT_EQ(signals.steps_after_exception, 5);
  EXPECT_THAT(signals.unread_keys,
              ::testing::ElementsAre(std::pair<std::string, std::string>("loader.workers", "a.yaml:3")));
}

TEST_F(SignalsFromRecord, OfARunThatEndsByExceptionsTheOneThatIsNoConsequenceCounts) {
  Script script(folder());
  script.step(0, 100, 0);
  script.note({{"type", "exception"}, {"message", "KeyError: 'x'"}}, 50);
  script.note({{"type", "exception"}, {"message", "ValueError: no such class"}}, 150);
  script.note({{"type", "exception"}, {"message", "RuntimeError: Connection closed by peer"}}, 151);
  script.note(
      {{"type", "exception"}, {"message", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "}}, 200);
  script.end(300);
  const Signals signals = read();
  EXPECT_EQ(signals.exception, "ValueError: no such class");
  EXPECT_EQ(signals.steps_after_exception, 0);
  EXPECT_EQ(signals.earlier_exceptions, 1);
}

TEST_F(SignalsFromRecord, OddNotesAndMetaAreNotFatal) {
  Script script(folder());
  script.writer.set_meta(record::meta::kHost, "none");
  script.writer.set_meta(record::meta::kGpus, {{"a", 1}});
  script.writer.set_meta(record::meta::kExit, nlohmann::json::array({1, 2}));
  script.note({{"type", 7}});
  script.note({{"type", "data"}, {"samples_per_epoch", 0}});
  script.note({{"type", "model"}, {"convolutions", "many"}});
  script.note({{"type", "unread"}, {"keys", {1, "a"}}});
  script.writer.flush();
  const Signals signals = read();
  EXPECT_FALSE(signals.epochs.has_value());
  EXPECT_FALSE(signals.model_has_convolutions.has_value());
  EXPECT_FALSE(signals.cpus_allowed.has_value());
  EXPECT_FALSE(signals.exit_code.has_value());
  EXPECT_FALSE(signals.gpus.has_value());
}

TEST_F(SignalsFromRecord, NoRecordIsAnInputError) {
  try {
    diagnose_record(folder() / "nothing");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
  }
}

}  // namespace
}  // namespace unidle::diagnose
