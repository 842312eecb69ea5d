// What tests of rings share: a folder for them, and events whose fields say their number.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "unidle/base/files.h"
#include "unidle/probe/ring_reader.h"
#include "unidle/probe/unidle_probe.h"

namespace unidle::probe::testing {

namespace fs = std::filesystem;

class RingCase : public ::testing::Test {
 protected:
  RingCase() { ::setenv("UNIDLE_PROBE_DIR", folder_.path().c_str(), 1); }
  ~RingCase() override { ::unsetenv("UNIDLE_PROBE_DIR"); }

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

}  // namespace unidle::probe::testing
