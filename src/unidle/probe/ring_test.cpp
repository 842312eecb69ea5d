#include "unidle/probe/ring.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "unidle/base/handle.h"
#include "unidle/probe/ring_reader.h"
#include "unidle/probe/testing/ring_case.h"

namespace unidle::probe {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Ring : public testing::RingCase {};

TEST_F(Ring, EverythingIsANoOpWithoutTheVariable) {
  ::unsetenv("UNIDLE_PROBE_DIR");
  unidle_probe* probe = unidle_probe_open("train");
  EXPECT_EQ(probe, nullptr);
  const unidle_event event{};
  unidle_probe_emit(probe, &event);
  emit_steps(probe, 0, 1);
  unidle_probe_note(probe, "{\"type\":\"x\"}");
  EXPECT_EQ(unidle_probe_dropped(probe), 0U);
  unidle_probe_close(probe);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(Ring, OpenFailsQuietlyWhereNothingCanBeWritten) {
  ::setenv("UNIDLE_PROBE_DIR", "/proc/none", 1);
  EXPECT_EQ(unidle_probe_open("train"), nullptr);
}

TEST_F(Ring, LimitOnFileSizeNeverEndsTheProgram) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit small{100'000, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const bool refused = unidle_probe_open("train") == nullptr;
    const rlimit large{3'000'000, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &large);
    unidle_probe* probe = unidle_probe_open("train");
    const std::string note = "{\"type\":\"" + std::string(1'000'000, 'x') + "\"}";
    for (int i = 0; i < 5; ++i) {
      unidle_probe_note(probe, note.c_str());
    }
    ::_exit(refused && probe != nullptr ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Ring, CarriesEventsInOrder) {
  unidle_probe* probe = unidle_probe_open("worker");
  ASSERT_NE(probe, nullptr);
  const auto reader = open(file(".ring"));
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->pid(), ::getpid());
  EXPECT_EQ(reader->role(), "worker");
  EXPECT_THAT(drain(*reader), IsEmpty());
  unidle_event event{5, 6, 7, 8, 9, 0.5, UNIDLE_EVENT_SAMPLE, 3, 0};
  unidle_probe_emit(probe, &event);
  unidle_step step{1, 2, 3, 4, 5, 0.25, 0, 99, 6, 7, 11, 12, 13, 14, 15, 16, 17, 18};
  unidle_probe_step(probe, &step);
  const std::vector<Slot> events = drain(*reader);
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(std::memcmp(&events[0].event, &event, sizeof event), 0);
  step.kind = UNIDLE_EVENT_STEP;
  EXPECT_EQ(std::memcmp(&events[1].step, &step, sizeof step), 0);
  EXPECT_FALSE(reader->closed());
  unidle_probe_close(probe);
  EXPECT_TRUE(reader->closed());
}

TEST_F(Ring, WrapsAroundManyTimes) {
  unidle_probe* probe = unidle_probe_open("train");
  const auto reader = open(file(".ring"));
  std::uint64_t next = 0;
  for (std::uint64_t at = 0; at < 5 * kRingCapacity; at += 10'007) {
    emit_steps(probe, at, at + 10'007);
    for (const Slot& event : drain(*reader)) {
      ASSERT_EQ(event.step.step, next++);
    }
  }
  EXPECT_GE(next, 5 * kRingCapacity);
  EXPECT_EQ(reader->dropped(), 0U);
  unidle_probe_close(probe);
}

TEST_F(Ring, FullRingDropsTheNewestAndCounts) {
  unidle_probe* probe = unidle_probe_open("train");
  emit_steps(probe, 0, kRingCapacity + 10);
  EXPECT_EQ(unidle_probe_dropped(probe), 10U);
  const auto reader = open(file(".ring"));
  const std::vector<Slot> events = drain(*reader);
  ASSERT_THAT(events, SizeIs(kRingCapacity));
  EXPECT_EQ(events.back().step.step, kRingCapacity - 1);
  EXPECT_EQ(reader->dropped(), 10U);
  emit_steps(probe, 77, 78);
  EXPECT_EQ(drain(*reader).at(0).step.step, 77U);
  unidle_probe_close(probe);
}

TEST_F(Ring, ReaderAndWriterAtTheSameTimeLoseNothing) {
  unidle_probe* probe = unidle_probe_open("train");
  constexpr std::uint64_t kEvents = 2'000'000;
  std::thread writer([&] {
    emit_steps(probe, 0, kEvents);
    unidle_probe_close(probe);
  });
  const auto reader = open(file(".ring"));
  std::uint64_t seen = 0;
  std::uint64_t last = 0;
  for (bool over = false; !over;) {
    over = reader->closed();
    for (const Slot& event : drain(*reader)) {
      ASSERT_TRUE(seen == 0 || event.step.step > last);
      ASSERT_EQ(event.step.t_ns, event.step.step);
      ASSERT_EQ(event.step.flush_ns, event.step.step);
      last = event.step.step;
      ++seen;
    }
  }
  writer.join();
  EXPECT_EQ(seen + reader->dropped(), kEvents);
}

TEST_F(Ring, DeadProcessIsDrained) {
  const pid_t child = ::fork();
  if (child == 0) {
    unidle_probe* probe = unidle_probe_open("train");
    emit_steps(probe, 0, 100);
    unidle_probe_note(probe, "{\"type\":\"last\"}");
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  const auto reader = open(file(".ring", child));
  ASSERT_NE(reader, nullptr);
  EXPECT_TRUE(reader->closed());
  EXPECT_THAT(drain(*reader), SizeIs(100));
  EXPECT_EQ(reader->pid(), child);
}

TEST_F(Ring, ForkedChildLeavesItsParentsRingAlone) {
  unidle_probe* probe = unidle_probe_open("train");
  const pid_t child = ::fork();
  if (child == 0) {
    emit_steps(probe, 500, 600);
    unidle_probe_note(probe, "{\"type\":\"stray\"}");
    unidle_probe* own = unidle_probe_open("worker");
    emit_steps(own, 0, 3);
    unidle_probe_close(probe);
    unidle_probe_close(own);
    ::_exit(own != nullptr ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  emit_steps(probe, 0, 1);
  const auto parents = open(file(".ring"));
  EXPECT_THAT(drain(*parents), SizeIs(1));
  EXPECT_FALSE(parents->closed());
  EXPECT_EQ(read_file(notes_file()), "");
  const auto childs = open(file(".ring", child));
  ASSERT_NE(childs, nullptr);
  EXPECT_THAT(drain(*childs), SizeIs(3));
  unidle_probe_close(probe);
}

TEST_F(Ring, SecondRingOfAProcessGetsItsOwnFile) {
  unidle_probe* first = unidle_probe_open("train");
  unidle_probe* second = unidle_probe_open("worker");
  emit_steps(second, 4, 5);
  EXPECT_THAT(drain(*open(file(".ring"))), IsEmpty());
  EXPECT_THAT(drain(*open(file(".1.ring"))), SizeIs(1));
  unidle_probe_close(first);
  unidle_probe_close(second);
}

TEST_F(Ring, WhatWasNotReleasedIsThereForAnotherReader) {
  unidle_probe* probe = unidle_probe_open("train");
  emit_steps(probe, 0, 100);
  std::vector<Slot> events;
  const auto before = open(file(".ring"));
  before->drain(events);
  EXPECT_THAT(events, SizeIs(100));
  EXPECT_THAT(drain(*open(file(".ring"))), SizeIs(100));
  const auto reader = open(file(".ring"));
  EXPECT_EQ(reader->position(), 100U);
  EXPECT_THAT(drain(*reader), IsEmpty());
  unidle_probe_close(probe);
}

TEST_F(Ring, WhatIsInTheRecordIsLeftOut) {
  unidle_probe* probe = unidle_probe_open("train");
  emit_steps(probe, 0, 100);
  const auto reader = open(file(".ring"));
  reader->skip_to(40);
  const auto events = drain(*reader);
  ASSERT_THAT(events, SizeIs(60));
  EXPECT_EQ(events.front().step.step, 40U);
  reader->skip_to(10);  // never backwards
  EXPECT_EQ(reader->position(), 100U);
  unidle_probe_close(probe);
}

TEST_F(Ring, IsCrowdedUntilItIsReleased) {
  unidle_probe* probe = unidle_probe_open("train");
  const auto reader = open(file(".ring"));
  std::vector<Slot> events;
  emit_steps(probe, 0, kRingCapacity / 4);
  reader->drain(events);
  EXPECT_FALSE(reader->nearly_full());
  emit_steps(probe, 0, 1);
  reader->drain(events);
  EXPECT_TRUE(reader->nearly_full());
  reader->release();
  EXPECT_FALSE(reader->nearly_full());
  unidle_probe_close(probe);
}

TEST_F(Ring, TellsWhoWritesIt) {
  unidle_probe* probe = unidle_probe_open("train");
  const auto reader = open(file(".ring"));
  const std::string stat = read_file("/proc/self/stat");
  std::istringstream rest(stat.substr(stat.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 22; ++i) {
    rest >> field;
  }
  EXPECT_EQ(std::to_string(reader->process_start()), field);
  EXPECT_THAT(notes_file().filename().string(), ::testing::HasSubstr("." + field + ".notes.jsonl"));
  unidle_probe_close(probe);
}

TEST_F(Ring, AFileLockShowsThatTheWriterLives) {
  const fs::path path = file(".ring");
  unidle_probe* probe = unidle_probe_open("train");
  unidle_probe_close(probe);
  {
    // As the Python shim creates it: open, under flock(2), without a descriptor of its own.
    std::fstream ring(path, std::ios::in | std::ios::out | std::ios::binary);
    const std::uint32_t lock = kFileLock;
    const std::uint32_t state = kRingOpen;
    ring.seekp(28).write(reinterpret_cast<const char*>(&lock), 4);
    ring.seekp(56).write(reinterpret_cast<const char*>(&state), 4);
  }
  const auto reader = open(path);
  EXPECT_TRUE(reader->closed());
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ::flock(fd, LOCK_EX);
    ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    [[maybe_unused]] const ssize_t put = ::write(pipe[1], "x", 1);
    ::pause();
  }
  char ready;
  ASSERT_EQ(::read(pipe[0], &ready, 1), 1);
  EXPECT_FALSE(reader->closed());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(reader->closed());
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace unidle::probe
