#include "unidle/diagnose/signals_from_record.h"

#include <gmock/gmock.h>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/detail/timeline.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/trace/document.h"

namespace unidle::diagnose {
namespace {

using ::testing::Contains;
using ::testing::Field;

constexpr std::int64_t kStart = 1'000 * kNsPerSecond;
constexpr std::int64_t kProcess = 42;
std::int64_t ms(std::int64_t value) { return value * kNsPerMs; }

/// Writes a record of a CPU run step by step; times in milliseconds since the start.
class Script {
 public:
  explicit Script(const std::filesystem::path& folder) : writer(folder) {
    writer.set_meta(record::meta::kStartNs, kStart);
    writer.set_meta(record::meta::kHost, {{"cpus_allowed", 4}, {"cpu_quota", nullptr}, {"cpu_flags", {"avx2", "fma"}}});
    writer.set_meta(record::meta::kGpus, nlohmann::json::array());
  }
  void end(std::int64_t at_ms, int code = 0) {
    writer.set_meta(record::meta::kEndNs, kStart + ms(at_ms));
    writer.set_meta(record::meta::kExit, {{"code", code}, {"signal", 0}});
    writer.set_meta(record::meta::kOutcome, code == 0 ? "completed" : "failed");
    writer.flush();
  }
  void effective(const std::string& knob, const std::string& value) {
    writer.add(record::Setting{knob, value, "effective", ""});
  }
  void configured(const std::string& knob, const std::string& value, const std::string& at) {
    writer.add(record::Setting{knob, value, "configured", at});
  }
  void span(const std::string& kind, std::int64_t at_ms, std::int64_t duration_ms) {
    writer.add(record::Span{kind, kProcess, kStart + ms(at_ms), ms(duration_ms), 0});
  }
  void note(const nlohmann::json& body, std::int64_t at_ms = 0) {
    writer.add(record::Note{kStart + ms(at_ms), kProcess, body});
  }
  /// A step with 10 ms of optimiser; the rest of what is not input is forward and backward.
  void step(std::int64_t at_ms, std::int64_t duration_ms, std::int64_t input_ms, std::int64_t process = kProcess) {
    record::Step step;
    step.process = process;
    step.index = index++;
    step.t_ns = kStart + ms(at_ms);
    step.duration_ns = ms(duration_ms);
    step.samples = 8;
    step.input_ns = ms(input_ms);
    step.forward_ns = ms(duration_ms - input_ms - 10) / 2;
    step.backward_ns = ms(duration_ms - input_ms - 10) / 2;
    step.optimizer_ns = ms(10);
    writer.add(step);
  }
  void cpu(double cores, std::int64_t from_ms, std::int64_t to_ms) {
    const std::int64_t id = writer.series({std::string(record::series::kTreeCpu), "cores", ""});
    for (std::int64_t t = from_ms; t < to_ms; t += 100) {
      writer.add_point(id, {kStart + ms(t), cores});
    }
  }
  record::Writer writer;
  std::int64_t index = 0;
};

/// 100 steps of 100 ms from second 2 on, 60 ms of each waiting; one validation of 2 s after step 50, one checkpoint of
/// 0.5 s at the end, half a second of something else.
void write_waiting_run(Script& script) {
  script.note({{"type", "data"}, {"samples_per_epoch", 200}});
  script.note({{"type", "model"}, {"parameters", 60000}, {"convolutions", 12}, {"depthwise", true}});
  script.effective("device", "cpu");
  script.effective("loader.workers", "0");
  script.configured("loader.workers", "0", "naive.yaml:7");
  script.effective("precision.amp", "off");
  script.span("startup", 0, 2000);
  for (int i = 0; i < 50; ++i) {
    script.step(2000 + i * 100, 100, 60);
  }
  script.span("validate", 7000, 2000);
  for (int i = 0; i < 50; ++i) {
    script.step(9000 + i * 100, 100, 60);
  }
  script.span("checkpoint", 14000, 500);
  for (int second = 2; second < 14; ++second) {
    script.writer.add(record::SampleWork{kProcess, 0, kStart + ms(second * 1000), 80, ms(600), ms(9), 0});
  }
  script.cpu(0.2, 0, 2000);
  script.cpu(1.0, 2000, 7000);
  script.cpu(4.0, 7000, 9000);  // validation is not training
  script.cpu(1.0, 9000, 14000);
  script.end(15000);
}

class SignalsFromRecord : public ::testing::Test {
 protected:
  std::filesystem::path folder() const { return temporary_.path() / "run"; }
  Signals read() const { return read_signals(record::Reader(folder())); }
  TemporaryFolder temporary_;
};

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

/// Two steps of 10 ms; the device has one kernel of 2 ms and one copy of 1 ms in each.
nlohmann::json window_of_two_steps() {
  trace::TraceSummary window;
  window.window_s = 0.020;
  window.step_s.add(0.010);
  window.step_s.add(0.010);
  window.devices = {{"0", 0.006}};
  window.kernels = {{"nvjet_hsh", 2, 0.003, true}, {"add", 2, 0.001, false}};
  window.kernel_count = 4;
  window.kernel_s = 0.004;
  window.matrix_s = 0.003;
  window.copies = {{"HtoD (Pageable -> Device)", 2, 0.002, 3000}, {"HtoD (Pinned -> Device)", 1, 0.001, 1000}};
  return {{"type", "trace_analysis"}, {"file", "trace-42.json"}, {"analysis", trace::to_json(window)}};
}

TEST_F(SignalsFromRecord, AProfilerWindowTellsOfKernelsAndCopies) {
  Script script(folder());
  write_waiting_run(script);
  script.effective("device", "cuda:0");
  script.note(window_of_two_steps());
  script.writer.flush();
  const Signals signals = read();
  EXPECT_NEAR(*signals.device_step_s, 0.003, 1e-9);
  EXPECT_NEAR(*signals.device_busy, 0.03, 1e-9);  // of steps that take 100 ms when nobody profiles them
  EXPECT_THAT(read_signals(record::Reader(folder()), Language::kChinese).device_busy_how,
              ::testing::HasSubstr("内核与复制占"));
  EXPECT_NEAR(signals.kernels->matrix_share, 0.75, 1e-9);
  EXPECT_NEAR(signals.kernels->mean_s, 0.001, 1e-9);
  EXPECT_FALSE(signals.kernels->launch_s);  // none was seen: not zero
  EXPECT_NEAR(signals.transfer->pageable_bytes, 3000, 1e-9);
  EXPECT_NEAR(signals.transfer->pinned_bytes, 1000, 1e-9);
}

TEST_F(SignalsFromRecord, KernelsOfTheWholeRunAreTruerThanNvml) {
  Script script(folder());
  write_waiting_run(script);
  script.effective("device", "cuda:0");
  const std::int64_t utilisation = script.writer.series({std::string(record::series::kGpuUtil), "share", "gpu0"});
  const std::int64_t kernels = script.writer.series({"cupti.busy", "share", "gpu0"});
  for (std::int64_t second = 2; second < 15; ++second) {
    script.writer.add_point(utilisation, {kStart + ms(second * 1000), 0.9});
    script.writer.add_point(kernels, {kStart + ms(second * 1000), 0.25});
  }
  script.writer.flush();
  EXPECT_NEAR(*read().device_busy, 0.25, 1e-9);
  EXPECT_THAT(read_signals(record::Reader(folder()), Language::kChinese).device_busy_how,
              ::testing::HasSubstr("所有流的并集"));
}

TEST_F(SignalsFromRecord, RanksWorkAtTheSameTime) {
  Script script(folder());
  write_waiting_run(script);
  for (int i = 0; i < 100; ++i) {
    script.step(2000 + i * 110, 110, 10, kProcess + 1);
  }
  for (const std::int64_t rank : {0, 1}) {
    const std::int64_t process = kProcess + rank;
    script.writer.add(record::Note{kStart, process, {{"type", "parallel"}, {"kind", "ddp"}, {"rank", rank}}});
    script.writer.add(record::Note{kStart, process, {{"type", "rank"}, {"rank", rank}, {"wait_seconds", 0.06 * rank}}});
  }
  script.writer.flush();
  const Signals signals = read();
  ASSERT_EQ(signals.ranks.size(), 2U);
  EXPECT_NEAR(signals.ranks[0].step_s, 0.10, 1e-9);
  EXPECT_NEAR(signals.ranks[1].step_s, 0.11, 1e-9);
  EXPECT_NEAR(*signals.samples_per_s, 160, 1e-6);
  EXPECT_THAT(diagnose(signals).findings, Contains(Field(&Finding::id, "straggler-rank")));
}

TEST_F(SignalsFromRecord, AWindowWithoutADeviceTellsNothingOfOne) {
  Script script(folder());
  write_waiting_run(script);
  trace::TraceSummary window;
  window.step_s.add(0.010);
  script.note({{"type", "trace_analysis"}, {"file", "trace-42.json"}, {"analysis", trace::to_json(window)}});
  script.writer.flush();
  const Signals signals = read();
  EXPECT_FALSE(signals.kernels);
  EXPECT_FALSE(signals.device_step_s);
  EXPECT_FALSE(signals.transfer);
  EXPECT_NEAR(*signals.device_busy, 0.25, 1e-9);  // of the CPUs, as without a window
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

TEST_F(SignalsFromRecord, WarmUpIsLeftOut) {
  EXPECT_EQ(detail::warm_up_steps(0), 0U);
  EXPECT_EQ(detail::warm_up_steps(1), 0U);
  EXPECT_EQ(detail::warm_up_steps(4), 2U);
  EXPECT_EQ(detail::warm_up_steps(30), 3U);
  EXPECT_EQ(detail::warm_up_steps(200), 10U);
  EXPECT_EQ(detail::warm_up_steps(10'000), 20U);
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
      step.sync_ns = i % 20 == 2 ? std::optional(ms(90)) : std::nullopt;  // none of the steps in full has it
      if (input_known) {
        step.input_ns = ms(10);
      }
      script.writer.add(step);
    }
    script.end(40'000);
    const Signals signals = read_signals(record::Reader(place));
    ASSERT_TRUE(signals.step);
    const StepShares& step = *signals.step;
    EXPECT_NEAR(step.sync, 0.045, 0.001);
    EXPECT_NEAR(step.input, input_known ? 0.11 : 0.2, 0.002);
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
  script.note({{"type", "exception"}, {"message", "KeyError: 'x'"}}, 1450);
  script.note({{"type", "unread"}, {"keys", {{{"key", "loader.workers"}, {"at", "a.yaml:3"}}}}});
  script.end(2000);
  const Signals signals = read();
  EXPECT_EQ(signals.exception, "KeyError: 'x'");
  EXPECT_EQ(signals.steps_after_exception, 5);
  EXPECT_THAT(signals.unread_keys,
              ::testing::ElementsAre(std::pair<std::string, std::string>("loader.workers", "a.yaml:3")));
}

TEST_F(SignalsFromRecord, GpuSeries) {
  Script script(folder());
  script.writer.set_meta(record::meta::kGpus, {{{"index", 0}, {"memory_bytes", 1000}, {"capability", "9.0"}},
                                               {{"index", 1}, {"memory_bytes", 1000}, {"capability", "9.0"}}});
  script.effective("device", "cuda:1");
  for (int i = 0; i < 20; ++i) {
    script.step(i * 100, 100, 0);
  }
  for (const auto& [subject, busy, bytes] : {std::tuple("gpu0", 0.0, 10.0), std::tuple("gpu1", 0.8, 250.0)}) {
    const auto util = script.writer.series({std::string(record::series::kGpuUtil), "", subject});
    const auto memory = script.writer.series({std::string(record::series::kGpuMemory), "bytes", subject});
    for (int t = 1000; t < 2000; t += 100) {
      script.writer.add_point(util, {kStart + ms(t), busy});
      script.writer.add_point(memory, {kStart + ms(t), bytes});
    }
  }
  script.end(2000);
  const Signals signals = read();
  EXPECT_EQ(signals.device_kind, "cuda");
  EXPECT_NEAR(*signals.device_busy, 0.8, 1e-9);
  EXPECT_NEAR(*signals.gpu_memory_used, 0.25, 1e-9);
  EXPECT_EQ(signals.gpu_capability, "9.0");
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
