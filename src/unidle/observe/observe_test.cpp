#include "unidle/observe/observe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <map>
#include <thread>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/handle.h"
#include "unidle/observe/events.h"
#include "unidle/probe/unidle_probe.h"
#include "unidle/record/record.h"
#include "unidle/telemetry/process_tree.h"

namespace unidle::observe {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The observed program of the tests below, which start this test binary with it.
TEST(ObservedProgram, DISABLED_Train) {
  unidle_probe* probe = unidle_probe_open("train");
  ASSERT_NE(probe, nullptr);
  const auto emit = [&](std::uint32_t kind, std::uint64_t step, std::uint64_t duration_ns, std::uint64_t a = 0,
                        double value = 0) {
    const unidle_event event{unidle_probe_now_ns(), duration_ns, step, a, 0, value, kind, 0, 0};
    unidle_probe_emit(probe, &event);
  };
  unidle_probe_note(probe, R"({"type":"setting","knob":"loader.workers","value":4,"source":"effective"})");
  unidle_probe_note(probe, R"({"type":"metric","name":"psnr","value":31.5,"step":2,"samples":64})");
  unidle_probe_note(probe, R"({"type":"exception","text":"boom"})");
  emit(UNIDLE_EVENT_STARTUP, 0, 5);
  for (std::uint64_t number = 0; number < 3; ++number) {
    unidle_step step{};
    step.t_ns = unidle_probe_now_ns();
    step.duration_ns = 200;
    step.step = number;
    step.samples = 32;
    step.micro_batches = 2;
    step.seen = UNIDLE_STEP_INPUT | UNIDLE_STEP_FORWARD | UNIDLE_STEP_BACKWARD | UNIDLE_STEP_OPTIMIZER |
                UNIDLE_STEP_SYNC | (number == 1 ? UNIDLE_STEP_LOSS : 0);
    step.input_ns = 20;
    step.transfer_ns = 99;  // not seen
    step.forward_ns = 40;
    step.backward_ns = 60;
    step.optimizer_ns = 41;
    step.sync_ns = 2;
    step.syncs = 3;
    step.loss = 0.25;
    step.samples_before = 32;
    step.log_ns = number == 2 ? 2'000'000'000 : 0;
    unidle_probe_step(probe, &step);
  }
  emit(UNIDLE_EVENT_LOSS, 2, 0, 64, 0.125);  // reported later
  emit(UNIDLE_EVENT_SAMPLE, 0, 100, 1);
  emit(UNIDLE_EVENT_SAMPLE, 0, 300, 2);
  emit(UNIDLE_EVENT_VALIDATE, 0, 50, 128);
  unidle_probe_close(probe);
}

class Observe : public ::testing::Test {
 protected:
  Options options(std::vector<std::string> argv) const {
    Options result;
    result.argv = std::move(argv);
    result.record = folder_.path() / "record";
    result.quiet = true;
    return result;
  }
  Options training() const {
    return options({fs::read_symlink("/proc/self/exe").string(), "--gtest_also_run_disabled_tests",
                    "--gtest_filter=ObservedProgram.DISABLED_Train"});
  }
  record::Reader reader() const { return record::Reader(folder_.path() / "record"); }

  TemporaryFolder folder_;
};

TEST_F(Observe, AStepIsRecordedAsItWasTold) {
  ASSERT_TRUE(run(training()).status.ok());
  const std::vector<record::Step> steps = reader().steps();
  ASSERT_THAT(steps, SizeIs(3));
  EXPECT_EQ(steps[1].index, 1);
  EXPECT_EQ(steps[1].duration_ns, 200);
  EXPECT_EQ(steps[1].samples, 32);
  EXPECT_EQ(steps[1].micro_batches, 2);
  EXPECT_EQ(steps[1].input_ns, 20);
  EXPECT_EQ(steps[1].forward_ns, 40);
  EXPECT_EQ(steps[1].backward_ns, 60);
  EXPECT_EQ(steps[1].optimizer_ns, 41);
  EXPECT_EQ(steps[1].sync_ns, 2);
  EXPECT_EQ(steps[1].syncs, 3);
  EXPECT_FALSE(steps[1].transfer_ns.has_value());
  EXPECT_EQ(steps[1].loss, 0.25);
  EXPECT_EQ(steps[1].samples_before, 32);
  EXPECT_FALSE(steps[0].loss.has_value());
  EXPECT_FALSE(steps[0].samples_before.has_value());
  const std::vector<record::Series> series = reader().all_series();
  const auto log = std::find_if(series.begin(), series.end(), [](auto& one) { return one.name == "step.log"; });
  ASSERT_NE(log, series.end());
  const std::vector<record::Point> points = reader().points(*log);
  ASSERT_THAT(points, SizeIs(1));
  EXPECT_EQ(points[0].t_ns, steps[2].t_ns);
  EXPECT_EQ(points[0].value, 2);
}

TEST_F(Observe, NotesSpansAndSamplesReachTheRecord) {
  ASSERT_TRUE(run(training()).status.ok());
  const record::Reader record = reader();
  ASSERT_THAT(record.settings(), SizeIs(1));
  EXPECT_EQ(record.settings()[0].value, "4");
  EXPECT_EQ(record.metrics("psnr").at(0).value, 31.5);
  EXPECT_EQ(record.metrics("loss").at(0).value, 0.125);
  EXPECT_THAT(record.notes(), SizeIs(3));
  EXPECT_GT(record.notes()[0].process, 0);
  ASSERT_THAT(record.spans(), SizeIs(2));
  EXPECT_EQ(record.spans()[1].samples, 128);
  std::int64_t samples = 0;
  std::int64_t busy_ns = 0;
  for (const record::SampleWork& work : record.sample_work()) {
    samples += work.samples;
    busy_ns += work.busy_ns;
  }
  EXPECT_EQ(samples, 2);
  EXPECT_EQ(busy_ns, 400);
  EXPECT_EQ(record.meta(record::meta::kTier), "host+probe");
  EXPECT_EQ(record.meta(record::meta::kDropped), 0);
  EXPECT_FALSE(fs::exists(folder_.path() / "record/probe"));
}

TEST_F(Observe, QuietKeepsTheOutput) {
  const Result result = run(options({"sh", "-c", "echo out; echo err >&2; exit 4"}));
  EXPECT_EQ(result.status.code, 4);
  EXPECT_EQ(result.out_tail, "out\n");
  EXPECT_EQ(result.err_tail, "err\n");
  EXPECT_EQ(reader().output_tail("stderr"), "err\n");
  EXPECT_EQ(reader().meta(record::meta::kOutcome), "failed");
  EXPECT_EQ(reader().meta(record::meta::kTier), "host");
  EXPECT_GT(reader().meta(record::meta::kHost)->at("cpus_allowed").get<double>(), 0);
}

TEST_F(Observe, EnvironmentIsAdded) {
  Options added = options({"sh", "-c", "echo $ADDED"});
  added.environment["ADDED"] = "value";
  EXPECT_EQ(run(added).out_tail, "value\n");
}

TEST_F(Observe, UnknownProgramLeavesNothingBehind) {
  try {
    run(options({"/no/such/program"}));
    FAIL() << "it was started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_EQ(error.subject(), "/no/such/program");
  }
  EXPECT_FALSE(fs::exists(folder_.path() / "record"));
}

TEST_F(Observe, ExistingRecordIsRefused) {
  run(options({"true"}));
  try {
    run(options({"true"}));
    FAIL() << "it was overwritten";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
  }
}

TEST_F(Observe, UnwritableRecordLetsTheCommandRun) {
  std::ofstream(folder_.path() / "record") << "a file";
  const Result result = run(options({"sh", "-c", "echo ${UNIDLE_PROBE_DIR-none}"}));
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.out_tail, "none\n");
}

TEST_F(Observe, TimeoutEndsTheCommand) {
  Options limited = options({"sleep", "100"});
  limited.timeout_s = 0.2;
  const Result result = run(limited);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.status.signal, SIGTERM);
  EXPECT_EQ(reader().meta(record::meta::kOutcome), "timed-out");
}

TEST_F(Observe, StopEndsTheCommand) {
  std::stop_source source;
  Options stoppable = options({"sleep", "100"});
  stoppable.stop = source.get_token();
  std::thread stopper([&] { source.request_stop(); });
  const Result result = run(stoppable);
  stopper.join();
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.status.signal, SIGTERM);
  EXPECT_EQ(reader().meta(record::meta::kOutcome), "stopped");
}

/// Whether the process with the pid in `file` is alive.
bool lives(const std::filesystem::path& file) {
  std::int64_t pid = 0;
  std::ifstream(file) >> pid;
  EXPECT_GT(pid, 0);
  const auto stat = telemetry::read_process_stat(pid, "/");
  return stat && stat->state != 'Z';
}

TEST_F(Observe, NothingOfATrialIsLeftRunning) {
  const std::string file = folder_.path() / "pid";
  const std::string command = "setsid sleep 1000 & echo $! >" + file + "; ";
  for (const auto& [end, limit] : {std::pair("exit 0", 100.0), std::pair("wait", 0.3)}) {
    Options trial = options({"sh", "-c", command + end});
    trial.record = folder_.path() / end;
    trial.timeout_s = limit;
    run(trial);
    EXPECT_FALSE(lives(file)) << end;
  }
}

TEST_F(Observe, ATrialHasNoneOfOurFiles) {
  const UniqueFd open(::open((folder_.path() / "user's").c_str(), O_WRONLY | O_CREAT, 0600));  // inherited by exec
  const Result result = run(options({"sh", "-c", "ls /proc/self/fd | wc -l"}));
  EXPECT_EQ(result.out_tail, "4\n");  // three streams, and the folder that ls reads
}

TEST_F(Observe, ATimeoutEndsWhatTheCommandLeavesBehind) {
  const std::string file = folder_.path() / "pid";
  Options limited = options({"sh", "-c", "setsid sleep 1000 & echo $! >" + file + "; wait"});
  limited.quiet = false;
  limited.timeout_s = 0.3;
  run(limited);
  EXPECT_FALSE(lives(file));
}

TEST_F(Observe, DamagedRingsAndNotesAreProblemsAndNothingMore) {
  const Result result = run(options(
      {"sh", "-c", "head -c 5000 /dev/zero >$UNIDLE_PROBE_DIR/1.ring; echo half >$UNIDLE_PROBE_DIR/1.notes.jsonl"}));
  EXPECT_TRUE(result.status.ok());
  EXPECT_THAT(reader().meta(record::meta::kProblems)->dump(), HasSubstr("1.ring"));
  EXPECT_EQ(reader().meta(record::meta::kProblems)->size(), 2U);
}

TEST(EventWriter, WhatIsNotSeenIsNoZero) {
  const TemporaryFolder folder;
  {
    record::Writer writer(folder.path());
    EventWriter events(writer);
    unidle_step step{1, 9, 0, 1, 0, std::nan(""), UNIDLE_EVENT_STEP, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0};
    events.take_step(20, step);
    step.seen = UNIDLE_STEP_INPUT | UNIDLE_STEP_LOSS;
    events.take_step(10, step);
    step.seen = UNIDLE_STEP_SYNC;
    events.take_step(10, step);
  }
  const auto steps = record::Reader(folder.path()).steps();
  ASSERT_THAT(steps, SizeIs(3));
  EXPECT_FALSE(steps[0].input_ns.has_value());
  EXPECT_FALSE(steps[0].loss.has_value());
  EXPECT_EQ(steps[0].micro_batches, 1);
  EXPECT_EQ(steps[1].input_ns, 5);
  EXPECT_TRUE(std::isnan(steps[1].loss.value()));
  EXPECT_EQ(steps[2].sync_ns, 0);
  EXPECT_EQ(steps[2].syncs, 0);
}

TEST(EventWriter, CountsTheStepsOfEachProcess) {
  const TemporaryFolder folder;
  record::Writer writer(folder.path());
  EventWriter events(writer);
  EXPECT_EQ(events.steps_of(10), 0);
  probe::Slot slot{};
  slot.step.kind = UNIDLE_EVENT_STEP;
  slot.step.step = 4;
  events.take(10, slot);
  EXPECT_EQ(events.steps_of(10), 5) << "steps are numbered from 0";
  EXPECT_EQ(events.steps_of(11), 0);
  events.forget(10);
  EXPECT_EQ(events.steps_of(10), 0);
}

/// Each commit writes the sums since the last one: a kill loses nothing that was collected before.
TEST(EventWriter, WorkOfOneSecondAddsUpOverCommits) {
  const TemporaryFolder folder;
  {
    record::Writer writer(folder.path());
    EventWriter events(writer);
    for (const std::uint64_t ns : {100U, 300U, 200U}) {
      probe::Slot slot{};
      slot.event = {5'000'000'000, ns, 0, 7, 64, 0, UNIDLE_EVENT_SAMPLE, 1, 0};
      events.take(10, slot);
      events.write_work();
    }
    probe::Slot far{};  // more than any integer holds
    far.event = {5'000'000'000, 1, 0, 7, INT64_MAX, 0, UNIDLE_EVENT_SAMPLE, 2, 0};
    for (int i = 0; i < 4; ++i) {
      events.take(10, far);
      events.write_work();
    }
  }
  const auto work = record::Reader(folder.path()).sample_work();
  ASSERT_THAT(work, SizeIs(2));
  EXPECT_EQ(work[0].t_ns, 5'000'000'000);
  EXPECT_EQ(work[0].samples, 3);
  EXPECT_EQ(work[0].busy_ns, 600);
  EXPECT_EQ(work[0].slowest_ns, 300);
  EXPECT_EQ(work[0].bytes, 192);
  EXPECT_EQ(work[1].bytes, INT64_MAX);
}

TEST(EventWriter, ADevicesPeriodIsASeriesWhereItIsKnown) {
  const TemporaryFolder folder;
  {
    record::Writer writer(folder.path());
    EventWriter events(writer);
    events.take(7, {.event = {1, 2'000'000'000, 0, 0, 0, 0, UNIDLE_EVENT_DEVICE, 0, 0}});
    events.take(7, {.event = {5, 3'000'000'000, 1, 4'000'000'000, 0, 0, UNIDLE_EVENT_DEVICE, 0, 0}});
  }
  const record::Reader reader(folder.path());
  std::map<std::string, std::vector<double>> values;
  for (const record::Series& series : reader.all_series()) {
    for (const record::Point& point : reader.points(series)) {
      values[series.name].push_back(point.value);
    }
  }
  EXPECT_THAT(values["step.device"], ElementsAre(2.0, 3.0));
  EXPECT_THAT(values["step.device_period"], ElementsAre(4.0));
}

TEST(EventWriter, OddNotesAreKeptAsNotes) {
  const TemporaryFolder folder;
  {
    record::Writer writer(folder.path());
    EventWriter events(writer);
    for (const char* text : {R"({"type":5})", R"({"type":"setting"})", R"({"type":"metric","name":1,"value":"x"})",
                             R"({"type":"setting","knob":["a"],"value":null,"source":3,"t_ns":"soon"})", "{}"}) {
      events.take_note(1, 7, nlohmann::json::parse(text));
    }
  }
  const record::Reader reader(folder.path());
  EXPECT_THAT(reader.notes(), SizeIs(5));
  EXPECT_THAT(reader.settings(), SizeIs(1));
  EXPECT_TRUE(reader.metric_names().empty());
}

}  // namespace
}  // namespace unidle::observe
