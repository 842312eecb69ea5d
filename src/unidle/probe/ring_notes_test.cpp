#include "unidle/probe/ring.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <fstream>

#include "unidle/base/handle.h"
#include "unidle/probe/ring_reader.h"
#include "unidle/probe/testing/ring_case.h"

namespace unidle::probe {
namespace {

namespace fs = std::filesystem;
using ::testing::SizeIs;

class RingNotes : public testing::RingCase {};

TEST_F(RingNotes, NotesAreWholeLinesWithTheirTime) {
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

TEST_F(RingNotes, NotesThatWereReadAreRemovedAndMadeAnew) {
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
TEST_F(RingNotes, ADeepNoteIsRefused) {
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
