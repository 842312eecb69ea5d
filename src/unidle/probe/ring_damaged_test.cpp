#include "unidle/probe/ring.h"

#include <gmock/gmock.h>

#include <fstream>

#include "unidle/probe/ring_reader.h"
#include "unidle/probe/testing/ring_case.h"

namespace unidle::probe {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DamagedRing : public testing::RingCase {};

TEST_F(DamagedRing, TruncatedAndForeignFilesAreRefused) {
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

TEST_F(DamagedRing, DamagedHeaderBytesNeverHurtTheReader) {
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

TEST_F(DamagedRing, EventsThatCannotBeAreCounted) {
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

TEST_F(DamagedRing, FileCutShortWhileOpenEndsTheReading) {
  unidle_probe* probe = unidle_probe_open("train");
  const auto reader = open(file(".ring"));
  unidle_probe_close(probe);
  fs::resize_file(file(".ring"), 100);
  EXPECT_THAT(drain(*reader), IsEmpty());
  EXPECT_TRUE(reader->damaged());
  EXPECT_EQ(reader->dropped(), 0U);
  EXPECT_TRUE(reader->closed());
}

TEST_F(DamagedRing, WriterSurvivesADamagedTail) {
  unidle_probe* probe = unidle_probe_open("train");
  std::fstream(file(".ring"), std::ios::in | std::ios::out | std::ios::binary).seekp(128).write("\xff\xff\xff\xff", 4);
  emit_steps(probe, 0, 10);
  EXPECT_EQ(unidle_probe_dropped(probe), 10U);
  unidle_probe_close(probe);
}

TEST_F(DamagedRing, AStepOfAnOlderProgramHasNoParts) {
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

TEST_F(DamagedRing, ARingOfAnotherVersionIsRefused) {
  unidle_probe_close(unidle_probe_open("train"));
  const std::uint32_t old[] = {1, 64};
  std::fstream(file(".ring"), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(8)
      .write(reinterpret_cast<const char*>(old), sizeof old);
  std::string problem;
  EXPECT_EQ(RingReader::open(file(".ring"), problem), nullptr);
  EXPECT_EQ(problem, "has another version");
}

TEST_F(DamagedRing, ADamagedPlaceIsNotReadUpTo) {
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

}  // namespace
}  // namespace unidle::probe
