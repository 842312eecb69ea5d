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

#include "unidle/base/files.h"
#include "unidle/base/handle.h"
#include "unidle/probe/ring_reader.h"

namespace unidle::probe {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Ring : public ::testing::Test {
 protected:
  Ring() { ::setenv("UNIDLE_PROBE_DIR", folder_.path().c_str(), 1); }
  ~Ring() override { ::unsetenv("UNIDLE_PROBE_DIR"); }

  fs::path file(const std::string& end, pid_t pid = ::getpid()) const {
    return folder_.path() / (std::to_string(pid) + end);
  }

  /// This process's notes file; its name holds the pid and the start time.
  fs::path notes_file() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(std::to_string(::getpid()) + ".") && name.ends_with(".notes.jsonl")) {
        return entry.path();
      }
    }
    return folder_.path() / "none";
  }

  static std::unique_ptr<RingReader> open(const fs::path& path) {
    std::string problem;
    return RingReader::open(path, problem);
  }

  /// Drains and releases.
  static std::vector<Slot> drain(RingReader& reader) {
    std::vector<Slot> events;
    reader.drain(events);
    reader.release();
    return events;
  }

  static unidle_step step(std::uint64_t index) {
    unidle_step step{};
    step.step = index;
    step.t_ns = index;
    step.flush_ns = index;  // the last field
    return step;
  }

  static void emit_steps(unidle_probe* probe, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      const unidle_step event = step(i);
      unidle_probe_step(probe, &event);
    }
  }

  TemporaryFolder folder_;
};

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

TEST_F(Ring, TruncatedAndForeignFilesAreRefused) {
  unidle_probe* probe = unidle_probe_open("train");
  emit_steps(probe, 0, 10);
  unidle_probe_close(probe);
  const std::string whole = read_file(file(".ring"));
  for (const std::size_t keep :
       {std::size_t{0}, std::size_t{1}, std::size_t{100}, kHeaderBytes - 1, kHeaderBytes, whole.size() - 1}) {
    std::ofstream(folder_.path() / "cut.ring", std::ios::binary) << whole.substr(0, keep);
    std::string problem;
    EXPECT_EQ(RingReader::open(folder_.path() / "cut.ring", problem), nullptr) << keep;
    EXPECT_FALSE(problem.empty());
  }
  std::ofstream(folder_.path() / "text.ring") << std::string(10'000, 'x');
  EXPECT_EQ(open(folder_.path() / "text.ring"), nullptr);
  EXPECT_EQ(open(folder_.path() / "absent.ring"), nullptr);
}

TEST_F(Ring, DamagedHeaderBytesNeverHurtTheReader) {
  unidle_probe* probe = unidle_probe_open("train");
  emit_steps(probe, 0, 10);
  unidle_probe_close(probe);
  const std::string whole = read_file(file(".ring"));
  for (std::size_t at = 0; at < kHeaderBytes + 256; at += at < 256 ? 1 : 64) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    const fs::path path = folder_.path() / "damaged.ring";
    std::ofstream(path, std::ios::binary) << damaged;
    if (const auto reader = open(path)) {
      EXPECT_LE(drain(*reader).size(), kRingCapacity);
      reader->dropped();
      reader->closed();
    }
  }
}

TEST_F(Ring, EventsThatCannotBeAreCounted) {
  unidle_probe* probe = unidle_probe_open("train");
  unidle_event event{};
  for (const std::uint32_t kind : {0U, 9999U, 2U}) {
    event.kind = kind;
    unidle_probe_emit(probe, &event);
  }
  for (std::uint64_t unidle_step::*field :
       {&unidle_step::duration_ns, &unidle_step::input_ns, &unidle_step::flush_ns}) {
    unidle_step impossible = step(2);
    impossible.*field = ~std::uint64_t{0};
    unidle_probe_step(probe, &impossible);
  }
  emit_steps(probe, 3, 4);
  const auto reader = open(file(".ring"));
  EXPECT_THAT(drain(*reader), SizeIs(1));
  EXPECT_EQ(reader->refused(), 6U);
  unidle_probe_close(probe);
}

TEST_F(Ring, FileCutShortWhileOpenEndsTheReading) {
  unidle_probe* probe = unidle_probe_open("train");
  const auto reader = open(file(".ring"));
  unidle_probe_close(probe);
  fs::resize_file(file(".ring"), 100);
  EXPECT_THAT(drain(*reader), IsEmpty());
  EXPECT_TRUE(reader->damaged());
  EXPECT_EQ(reader->dropped(), 0U);
  EXPECT_TRUE(reader->closed());
}

TEST_F(Ring, WriterSurvivesADamagedTail) {
  unidle_probe* probe = unidle_probe_open("train");
  std::fstream(file(".ring"), std::ios::in | std::ios::out | std::ios::binary).seekp(128).write("\xff\xff\xff\xff", 4);
  emit_steps(probe, 0, 10);
  EXPECT_EQ(unidle_probe_dropped(probe), 10U);
  unidle_probe_close(probe);
}

TEST_F(Ring, NotesAreWholeLinesWithTheirTime) {
  unidle_probe* probe = unidle_probe_open("train");
  NotesReader notes(notes_file());
  std::vector<nlohmann::json> seen;
  const auto keep = [&](nlohmann::json body) { seen.push_back(std::move(body)); };
  unidle_probe_note(probe, "{\"type\":\"setting\",\n \"knob\":\"a\"}");
  notes.drain(keep);
  unidle_probe_note(probe, " {\"type\":\"x\",\"t_ns\":5}");
  unidle_probe_note(probe, "no json");
  unidle_probe_note(probe, "{\"type\":");
  std::ofstream(notes_file(), std::ios::app) << "[1]\n{\"type\":\"ha";
  notes.drain(keep);
  ASSERT_THAT(seen, SizeIs(2));
  EXPECT_EQ(seen[0].at("knob"), "a");
  EXPECT_GT(seen[0].at("t_ns").get<std::int64_t>(), 0);
  EXPECT_EQ(seen[1].at("t_ns"), 5);
  EXPECT_EQ(notes.refused(), 2U);
  std::ofstream(notes_file(), std::ios::app) << "lf\"}\n";
  notes.drain(keep);
  EXPECT_EQ(seen.back().at("type"), "half");
  unidle_probe_close(probe);
}

TEST_F(Ring, NotesThatWereReadAreRemovedAndMadeAnew) {
  unidle_probe* probe = unidle_probe_open("train");
  unidle_probe_note(probe, R"({"type":"first"})");
  const fs::path path = notes_file();
  NotesReader reader(path);
  std::vector<nlohmann::json> seen;
  const auto keep = [&](nlohmann::json body) { seen.push_back(std::move(body)); };
  EXPECT_FALSE(reader.remove_read());  // not read yet
  reader.drain(keep);
  const UniqueFd late(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));  // a writer is about to write
  EXPECT_TRUE(reader.remove_read());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_EQ(::write(late.get(), "{\"type\":\"late\"}\n", 16), 16);
  reader.drain(keep);
  EXPECT_THAT(seen, SizeIs(2));

  unidle_probe_note(probe, R"({"type":"second"})");
  NotesReader(notes_file()).drain(keep);
  ASSERT_THAT(seen, SizeIs(3));
  EXPECT_EQ(seen[2]["type"], "second");
  unidle_probe_close(probe);
}

/// A program compiled with version 1 has only 64-byte events; its steps arrive without parts.
TEST_F(Ring, AStepOfAnOlderProgramHasNoParts) {
  unidle_probe* probe = unidle_probe_open("train");
  emit_steps(probe, 0, kRingCapacity);  // the old content of the slot must not show
  const auto reader = open(file(".ring"));
  drain(*reader);
  const unidle_event event{1, 2, 3, 32, 4, 0, UNIDLE_EVENT_STEP, 0, 0};
  unidle_probe_emit(probe, &event);
  const auto events = drain(*reader);
  ASSERT_THAT(events, SizeIs(1));
  const unidle_step expected{1, 2, 3, 32, 0, 0, UNIDLE_EVENT_STEP, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(std::memcmp(&events[0].step, &expected, sizeof expected), 0);
  unidle_probe_close(probe);
}

TEST_F(Ring, ARingOfAnotherVersionIsRefused) {
  unidle_probe_close(unidle_probe_open("train"));
  const std::uint32_t old[] = {1, 64};
  std::fstream(file(".ring"), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(8)
      .write(reinterpret_cast<const char*>(old), sizeof old);
  std::string problem;
  EXPECT_EQ(RingReader::open(file(".ring"), problem), nullptr);
  EXPECT_EQ(problem, "has another version");
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

TEST_F(Ring, ADamagedPlaceIsNotReadUpTo) {
  unidle_probe* probe = unidle_probe_open("train");
  emit_steps(probe, 0, 10);
  unidle_probe_close(probe);
  const std::filesystem::path path = file(".ring");
  const std::uint64_t beyond = ~std::uint64_t{0} / 2;
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(offsetof(RingHeader, tail))
      .write(reinterpret_cast<const char*>(&beyond), sizeof beyond);
  const auto reader = open(path);
  reader->skip_to(beyond);
  EXPECT_THAT(drain(*reader), IsEmpty());
  EXPECT_TRUE(reader->damaged());
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

TEST_F(Ring, ADeepNoteIsRefused) {
  unidle_probe* probe = unidle_probe_open("train");
  NotesReader notes(file(".notes.jsonl"));
  int seen = 0;
  for (const std::size_t levels : {std::size_t{50}, std::size_t{30'000}}) {
    const std::string deep = std::string(levels, '[') + std::string(levels, ']');
    std::ofstream(file(".notes.jsonl"), std::ios::app) << "{\"type\":\"x\",\"a\":" << deep << "}\n";
  }
  notes.drain([&](const nlohmann::json&) { ++seen; });
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(notes.refused(), 1U);
  unidle_probe_close(probe);
}

}  // namespace
}  // namespace unidle::probe
