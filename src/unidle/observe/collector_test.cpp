#include "unidle/observe/collector.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <optional>

#include "unidle/base/files.h"
#include "unidle/observe/recovery.h"
#include "unidle/probe/ring.h"
#include "unidle/probe/testing/stretch_file.h"
#include "unidle/probe/unidle_probe.h"

namespace unidle::observe {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest() {
    fs::create_directories(probe_);
    ::setenv("UNIDLE_PROBE_DIR", probe_.c_str(), 1);
  }
  ~CollectorTest() override { ::unsetenv("UNIDLE_PROBE_DIR"); }

  static void emit_step(unidle_probe* probe, std::uint64_t step) {
    unidle_step event{};
    event.t_ns = 1000 * step + 1;
    event.duration_ns = 100;
    event.step = step;
    event.samples = 4;
    event.seen = UNIDLE_STEP_INPUT | UNIDLE_STEP_FORWARD;
    event.input_ns = event.forward_ns = 10;
    unidle_probe_step(probe, &event);
  }
  /// Leaves a ring with one step, as process `pid` with start time `start` would when it ends.
  void leave_ring(const std::string& name, std::uint32_t pid, std::uint64_t start) {
    unidle_probe* probe = unidle_probe_open("train");
    emit_step(probe, 0);
    unidle_probe_close(probe);
    const fs::path mine = probe_ / (std::to_string(::getpid()) + ".ring");
    std::fstream ring(mine, std::ios::in | std::ios::out | std::ios::binary);
    ring.seekp(24).write(reinterpret_cast<const char*>(&pid), 4);
    ring.seekp(200).write(reinterpret_cast<const char*>(&start), 8);
    ring.close();
    fs::rename(mine, probe_ / name);
  }

  struct Session {
    explicit Session(const CollectorTest& test, probe::OpenFile opener = probe::open_file)
        : writer(test.folder_.path()), events(writer), collector(test.probe_, writer, events, std::move(opener)) {
      writer.commit_on_flush_only();
    }
    void round(std::int64_t now) {
      collector.take_events();
      collector.take_notes(now);
      events.write_work();
      collector.write_positions();
      writer.flush();
      collector.settle();
    }
    record::Writer writer;
    EventWriter events;
    Collector collector;
  };

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(probe_), fs::directory_iterator()));
  }

  TemporaryFolder folder_;
  fs::path probe_ = folder_.path() / "probe";
};

TEST_F(CollectorTest, ProcessesThatHaveEndedAreNotOpenedAgain) {
  constexpr int kRounds = 100;
  constexpr int kEach = 20;
  std::uint64_t opens = 0;
  Session session(*this, [&](const char* path, int flags) {
    ++opens;
    return probe::open_file(path, flags);
  });
  std::size_t most = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int child = 0; child < kEach; ++child) {
      const int pid = 100'000 + round * kEach + child;
      std::ofstream(probe_ / (std::to_string(pid) + ".77.notes.jsonl")) << "{\"type\":\"shim\",\"status\":\"on\"}\n";
      if (child == 0) {
        leave_ring(std::to_string(pid) + ".ring", static_cast<std::uint32_t>(pid), 77);
      }
    }
    session.round(round);
    most = std::max(most, files());
  }
  for (int round = 0; round < 5; ++round) {
    session.round(kRounds + round);
  }
  EXPECT_LE(opens, 8U * kRounds * kEach);
  EXPECT_LE(most, 6U * kEach);
  EXPECT_EQ(files(), 0U);
  EXPECT_THAT(record::Reader(folder_.path()).notes(), SizeIs(kRounds * kEach));
  EXPECT_THAT(record::Reader(folder_.path()).steps(), SizeIs(kRounds));
}

TEST_F(CollectorTest, FilesThatAreNoRingsAreTriedEverMoreSeldom) {
  std::uint64_t opens = 0;
  Session session(*this, [&](const char* path, int flags) {
    ++opens;
    return probe::open_file(path, flags);
  });
  std::ofstream(probe_ / "5.ring") << "no ring";
  for (int round = 0; round < 2000; ++round) {
    session.collector.take_events();
  }
  EXPECT_LT(opens, 100U);
  EXPECT_THAT(session.collector.problems(), SizeIs(1));
}

TEST_F(CollectorTest, AProcessNumberThatIsUsedAgainIsAnotherProcess) {
  Session session(*this);
  leave_ring("500.ring", 500, 1111);
  std::ofstream(probe_ / "500.1111.notes.jsonl") << "{\"type\":\"a\"}\n";
  session.round(1);
  leave_ring("500.ring", 500, 2222);  // an earlier file of this name was read to its end
  std::ofstream(probe_ / "500.2222.notes.jsonl") << "{\"type\":\"b\"}\n";
  session.round(2);
  leave_ring("500.ring", 500, 2222);  // the same process opens a new ring
  session.round(3);
  session.round(4);
  const record::Reader reader(folder_.path());
  std::vector<std::int64_t> processes;
  for (const record::Step& step : reader.steps()) {
    processes.push_back(step.process);
  }
  EXPECT_THAT(processes, ElementsAre(500, 500 + Processes::kEach, 500 + Processes::kEach));
  ASSERT_THAT(reader.notes(), SizeIs(2));
  EXPECT_EQ(reader.notes()[0].process, 500);
  EXPECT_EQ(reader.notes()[1].process, 500 + Processes::kEach);
}

/// The notes file of a quiet process is removed; its last note before the run ends goes into a new file of the same
/// name.
TEST_F(CollectorTest, ANoteAfterAnyNumberOfQuietRoundsIsRead) {
  for (int quiet = 0; quiet < 6; ++quiet) {
    const TemporaryFolder run;
    const fs::path probe_folder = run.path() / "probe";
    fs::create_directories(probe_folder);
    ::setenv("UNIDLE_PROBE_DIR", probe_folder.c_str(), 1);
    record::Writer writer(run.path());
    EventWriter events(writer);
    Collector collector(probe_folder, writer, events);
    const auto round = [&](std::int64_t now) {
      collector.take_all_events();
      collector.take_notes(now);
      collector.write_positions();
      writer.flush();
      collector.settle();
    };
    unidle_probe* probe = unidle_probe_open("train");
    unidle_probe_note(probe, R"({"type":"first"})");
    for (int i = 0; i <= quiet; ++i) {
      round(i);
    }
    unidle_probe_note(probe, R"({"type":"last"})");
    unidle_probe_close(probe);
    round(quiet + 1);
    collector.remove_files();
    writer.flush();
    EXPECT_THAT(record::Reader(run.path()).notes(), SizeIs(2)) << quiet;
  }
}

/// Kills the recorder after each of its operations in turn; after recovery, every step is there exactly once.
TEST_F(CollectorTest, NothingIsLostOrTakenTwiceWhereverTheRecorderIsKilled) {
  constexpr std::uint64_t kSteps = 40;
  for (int last = 0; last < 72; ++last) {
    const TemporaryFolder run;
    const fs::path probe_folder = run.path() / "probe";
    fs::create_directories(probe_folder);
    ::setenv("UNIDLE_PROBE_DIR", probe_folder.c_str(), 1);
    unidle_probe* probe = unidle_probe_open("train");
    const pid_t child = ::fork();
    if (child == 0) {
      int left = last;
      const auto operation = [&](const std::function<void()>& work) {
        work();
        if (left-- == 0) {
          ::raise(SIGKILL);
        }
      };
      // The child is the recorder. It follows its parent, which is stopped meanwhile.
      const UniqueFd lock = lock_folder(probe_folder);
      record::Writer writer(run.path());
      writer.commit_on_flush_only();
      writer.set_meta(record::meta::kPid, 1'000'000'000);
      writer.flush();
      EventWriter events(writer);
      Collector collector(probe_folder, writer, events);
      for (int round = 0; round < 100; ++round) {
        operation([&] { collector.take_events(); });
        operation([&] { collector.take_notes(round); });
        operation([&] { events.write_work(); });
        operation([&] { collector.write_positions(); });
        operation([&] { writer.flush(); });
        operation([&] { collector.settle(); });
        ::usleep(200);
      }
      ::_exit(1);
    }
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      emit_step(probe, step);
      const unidle_event sample{1000 * step + 1, 5, 0, 0, 0, 0, UNIDLE_EVENT_SAMPLE, 0, 0};
      unidle_probe_emit(probe, &sample);
      unidle_probe_note(probe, R"({"type":"metric","name":"psnr","value":1})");
      ::usleep(step % 7 == 0 ? 300 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << last;

    recover(run.path());
    emit_step(probe, kSteps);  // the process has outlived unidle and continues
    unidle_probe_close(probe);
    recover(run.path());
    EXPECT_EQ(recover(run.path()), 0U) << last;
    const record::Reader reader(run.path());
    const std::vector<record::Step> steps = reader.steps();
    ASSERT_THAT(steps, SizeIs(kSteps + 1)) << last;
    for (std::uint64_t i = 0; i <= kSteps; ++i) {
      EXPECT_EQ(steps[i].index, static_cast<std::int64_t>(i)) << last;
      EXPECT_EQ(steps[i].input_ns, 10) << last;
      EXPECT_EQ(steps[i].forward_ns, 10) << last;
    }
    std::int64_t samples = 0;
    for (const record::SampleWork& work : reader.sample_work()) {
      samples += work.samples;
    }
    EXPECT_EQ(samples, static_cast<std::int64_t>(kSteps)) << last;
    EXPECT_THAT(reader.metrics("psnr"), SizeIs(kSteps)) << last;
    EXPECT_FALSE(fs::exists(probe_folder)) << last;
  }
}

/// The process is running: whenever its stretch or its ring is read, it writes the marked steps into the ring and marks
/// later ones.
TEST_F(CollectorTest, AStretchThatEndsWhileItIsReadIsNotLost) {
  using probe::testing::StretchFile;
  constexpr std::uint64_t kEach = 3;  // steps in a stretch, then written into the ring
  unidle_probe* probe = unidle_probe_open("train");
  std::string problem;
  // Kept open: closing any descriptor of a file drops the process's record locks on it, and the ring would look
  // abandoned.
  const auto ring = probe::RingReader::open(probe_ / (std::to_string(::getpid()) + ".ring"), problem);
  std::uint64_t told = 0;
  const auto mark = [&] {
    StretchFile file;
    file[2] = static_cast<std::uint64_t>(::getpid());
    file[3] = ring->process_start();
    file[6] = told;  // first step, start time, one batch of 4 per step
    file[7] = 1000 * told;
    file[11] = 1;
    file[12] = 4;
    for (std::uint64_t number = 0; number <= kEach; ++number) {
      file.batch(number, 1000 * (told + number) + 1, 1000 * (told + number) + 2);
    }
    std::ofstream(probe_ / (std::to_string(::getpid()) + ".stretch"), std::ios::binary) << file.bytes();
  };
  const auto go_on = [&] {
    for (const std::uint64_t last = told + 2 * kEach; told < last; ++told) {
      emit_step(probe, told);
    }
    mark();
  };
  go_on();
  const std::uint64_t before = told;
  Session session(*this, [&](const char* path, int flags) {
    go_on();
    return probe::open_file(path, flags);
  });
  session.collector.take_all_events();
  session.writer.flush();
  const std::vector<record::Step> steps = record::Reader(folder_.path()).steps();
  EXPECT_GE(steps.size(), before);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    ASSERT_EQ(steps[i].index, static_cast<std::int64_t>(i));
  }
  unidle_probe_close(probe);
}

/// More samples each second than the ring holds: they are committed and released before it is full.
TEST_F(CollectorTest, ACrowdedRingAsksForACommit) {
  unidle_probe* probe = unidle_probe_open("train");
  Session session(*this);
  const unidle_event sample{1, 5, 0, 0, 0, 0, UNIDLE_EVENT_SAMPLE, 1, 0};
  std::uint64_t commits = 0;
  constexpr std::uint64_t kSamples = 10 * probe::kRingCapacity;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    unidle_probe_emit(probe, &sample);
    if (i % 1000 == 0) {
      session.collector.take_events();
      if (session.collector.nearly_full()) {
        session.round(1);
        ++commits;
      }
    }
  }
  session.round(2);
  EXPECT_EQ(unidle_probe_dropped(probe), 0U);
  EXPECT_GE(commits, 30U);
  const auto work = record::Reader(folder_.path()).sample_work();
  ASSERT_THAT(work, SizeIs(1)) << "the sums of one second";
  EXPECT_EQ(work[0].samples, static_cast<std::int64_t>(kSamples));
  unidle_probe_close(probe);
}

TEST_F(CollectorTest, ARecordThatIsBeingMadeIsLeftAlone) {
  Session session(*this);
  session.writer.flush();
  leave_ring("500.ring", 500, 1111);
  const UniqueFd lock = lock_folder(probe_);
  ASSERT_TRUE(lock);
  EXPECT_EQ(recover(folder_.path()), 0U);
  EXPECT_TRUE(fs::exists(probe_ / "500.ring"));
}

}  // namespace
}  // namespace unidle::observe
