// A record of a run on CPUs, written step by step.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/signals_from_record.h"
#include "unidle/record/record.h"

namespace unidle::diagnose::testing {

constexpr std::int64_t kStart = 1'000 * kNsPerSecond;
constexpr std::int64_t kProcess = 42;
inline std::int64_t ms(std::int64_t value) { return value * kNsPerMs; }

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
  /// A step with 10 ms of optimiser; the remaining time besides input is forward and backward.
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

/// 100 steps of 100 ms from second 2 on, each with 60 ms of waiting; one validation of 2 s after step 50, one
/// checkpoint of 0.5 s at the end, half a second of other work.
inline void write_waiting_run(Script& script) {
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

class ScriptedRecord : public ::testing::Test {
 protected:
  std::filesystem::path folder() const { return temporary_.path() / "run"; }
  Signals read() const { return read_signals(record::Reader(folder())); }
  TemporaryFolder temporary_;
};

}  // namespace unidle::diagnose::testing
