#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/layout.h"
#include "unidle/base/testing/fake_clock.h"
#include "unidle/monitor/collector.h"
#include "unidle/monitor/distribution.h"
#include "unidle/monitor/exporter.h"
#include "unidle/monitor/lines.h"
#include "unidle/monitor/screen.h"
#include "unidle/monitor/summary.h"
#include "unidle/record/record.h"

namespace unidle::monitor {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Snapshot with_gpu(double t_s, double utilisation) {
  Snapshot snapshot;
  snapshot.t_ns = static_cast<std::int64_t>(t_s * kNsPerSecond);
  snapshot.wall_ns = 1'700'000'000 * kNsPerSecond + snapshot.t_ns;
  snapshot.cpus_online = snapshot.cpus_allowed = 8;
  snapshot.host["host.cpu"] = 2;
  GpuNow& gpu = snapshot.gpus.emplace_back();
  gpu.subject = "gpu0";
  gpu.name = "H200";
  gpu.memory_total_bytes = 100;
  gpu.reading.utilisation = utilisation;
  gpu.reading.memory_bytes = 50;
  gpu.reading.power_w = 200;
  gpu.reading.power_limit_w = 400;
  return snapshot;
}

std::string text_of(const std::vector<ScreenLine>& lines) {
  std::string text;
  for (const ScreenLine& line : lines) {
    for (const Span& span : line) {
      text += span.text;
    }
    text += '\n';
  }
  return text;
}

TEST(DistributionTest, ExactMeanAndPeakOfAnyNumber) {
  Distribution values;
  EXPECT_FALSE(values.mean().has_value());
  EXPECT_FALSE(values.quantile(0.5).has_value());
  for (int i = 0; i <= 100'000; ++i) {
    values.add(i);
  }
  EXPECT_EQ(values.count(), 100'001U);
  EXPECT_DOUBLE_EQ(*values.mean(), 50'000);
  EXPECT_DOUBLE_EQ(*values.peak(), 100'000);
  EXPECT_NEAR(*values.quantile(0.95), 95'000, 50);
  Distribution negative;
  negative.add(-2);
  negative.add(-3);
  EXPECT_DOUBLE_EQ(*negative.peak(), -2);
}

TEST(DistributionTest, QuantilesOfALongSessionCountItsBeginningNoMoreThanItsEnd) {
  Distribution values;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    values.add(i);
  }
  for (const double q : {0.1, 0.5, 0.9}) {
    EXPECT_NEAR(values.quantile(q).value(), q * kCount, 16) << q;  // it keeps every sixteenth value
  }
}

TEST(SummaryTest, FiguresAndEnergyByIntegration) {
  Summary summary;
  summary.add(with_gpu(0, 0.2));
  summary.add(with_gpu(1, 0.4));
  summary.add(with_gpu(3, 0.6));
  const nlohmann::json json = summary.to_json();
  EXPECT_DOUBLE_EQ(json["seconds"], 3);
  EXPECT_DOUBLE_EQ(json["gpus"][0]["utilisation"]["mean"], 0.4);
  EXPECT_DOUBLE_EQ(json["gpus"][0]["utilisation"]["peak"], 0.6);
  EXPECT_DOUBLE_EQ(json["gpus"][0]["energy_j"], 600);
  EXPECT_TRUE(json["gpus"][0]["sm_activity"].is_null()) << "never measured";
  EXPECT_DOUBLE_EQ(json["cpu"]["share"]["mean"], 0.25);
  EXPECT_THAT(summary.to_text(80), AllOf(HasSubstr("utilisation"), HasSubstr("600 J"), HasSubstr("Verdict: the GPU")));
}

TEST(SummaryTest, EnergyByTheDevicesCounter) {
  Summary summary;
  Snapshot snapshot = with_gpu(0, 0.5);
  snapshot.gpus[0].reading.energy_j = 1000;
  summary.add(snapshot);
  snapshot.t_ns = 10 * kNsPerSecond;
  snapshot.gpus[0].reading.energy_j = 1123;
  summary.add(snapshot);
  EXPECT_DOUBLE_EQ(summary.to_json()["gpus"][0]["energy_j"], 123);
}

TEST(SummaryTest, OnceThereIsARunTheMachineIsNoPartOfItsMean) {
  Summary summary;
  const auto add = [&](double t_s, std::optional<std::int64_t> pid) {
    Snapshot snapshot = with_gpu(t_s, 0.5);
    snapshot.gpus.clear();
    snapshot.cpus_online = snapshot.cpus_allowed = 8;
    snapshot.host["host.cpu"] = 8;
    snapshot.pid = pid;
    snapshot.tree_cpu = 2;
    summary.add(snapshot);
  };
  add(0, {});
  EXPECT_THAT(summary.verdict(), HasSubstr("8 of 8 CPUs were in use"));
  add(1, 42);
  add(2, 42);
  add(3, {});
  EXPECT_THAT(summary.verdict(), HasSubstr("the run used 2 of 8 CPUs, 25 %"));
}

std::string verdict_of(const Snapshot& snapshot) {
  Summary summary;
  summary.add(snapshot);
  return summary.verdict();
}

TEST(SummaryTest, Verdicts) {
  EXPECT_THAT(verdict_of(with_gpu(0, 0.02)), StartsWith("the GPU idled: kernels ran"));
  EXPECT_THAT(verdict_of(with_gpu(0, 0.5)), StartsWith("the GPU idled part of the time"));
  EXPECT_THAT(verdict_of(with_gpu(0, 0.95)), StartsWith("the GPU worked"));
  Snapshot few = with_gpu(0, 0.95);
  few.gpus[0].reading.sm_activity = 0.2;
  EXPECT_THAT(verdict_of(few), HasSubstr("looked busy"));
  few.gpus[0].reading.sm_activity = 0.8;
  EXPECT_THAT(verdict_of(few), StartsWith("the GPU worked"));
  Snapshot waiting = with_gpu(0, 0.3);
  waiting.run.emplace();
  waiting.run->input_share = 0.6;
  EXPECT_THAT(verdict_of(waiting), HasSubstr("wait for input 60 %"));
  Snapshot silent = with_gpu(0, 0);
  silent.gpus[0].reading = {};
  EXPECT_THAT(verdict_of(silent), HasSubstr("did not say"));
  Snapshot hot = with_gpu(0, 0.9);
  hot.gpus[0].reading.throttle_reasons = telemetry::nvml::kReasonHardwareThermal;
  EXPECT_THAT(verdict_of(hot), HasSubstr("held down"));
  Snapshot none = with_gpu(0, 0);
  none.gpus.clear();
  EXPECT_THAT(verdict_of(none), AllOf(HasSubstr("the CPU"), HasSubstr("2 of 8 CPUs")));
  none.gpus_known = false;
  EXPECT_THAT(verdict_of(none), HasSubstr("unidle check"));
  EXPECT_EQ(Summary().verdict(), "too short to say anything");
}

TEST(LinesTest, CsvKeepsItsColumnsWhenADeviceIsLost) {
  CsvWriter csv;
  Snapshot snapshot = with_gpu(0, 0.5);
  const std::string header = csv.header(snapshot);
  EXPECT_THAT(header, StartsWith("time,cpu_used,cpu_share,steps_per_s,samples_per_s,input_share,gpu0.utilisation,"));
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  EXPECT_THAT(csv.row(snapshot), HasSubstr(",2,0.25,,,,0.5,50,200,"));
  snapshot.gpus.clear();
  EXPECT_EQ(commas(csv.row(snapshot)), commas(header));
}

TEST(LinesTest, AbsentIsNull) {
  Snapshot snapshot = with_gpu(0, 0);
  const nlohmann::json json = sample_json(snapshot);
  EXPECT_EQ(json["gpus"][0]["utilisation"], 0);
  EXPECT_TRUE(json["gpus"][0]["sm_activity"].is_null());
  EXPECT_TRUE(json["run"].is_null());
  EXPECT_EQ(json["t"], "2023-11-14T22:13:20.000Z");
  snapshot.gpus_known = false;
  EXPECT_TRUE(sample_json(snapshot)["gpus"].is_null());
  EXPECT_THAT(plain_lines(with_gpu(0, 0.5)),
              AllOf(HasSubstr("util  50 %"), HasSubstr("200/400 W"), Not(HasSubstr("SM"))));
}

TEST(ScreenTest, ShowsWhatIsThere) {
  Snapshot snapshot = with_gpu(0, 0.5);
  snapshot.pid = 42;
  snapshot.tree_cpu = 4;
  snapshot.processes = {{42, "python", telemetry::Role::kTrainer, 'R', 1.5, 0.25, 1 << 20, 3},
                        {43, "evil\x1b[2J\u009b\u202e\xff\n", telemetry::Role::kLoader, 'D', 0.5, {}, 2 << 20, 1}};
  snapshot.run.emplace();
  snapshot.run->folder = "/x/20260101-000000-train";
  snapshot.run->step = 7;
  snapshot.run->input_share = 0.6;
  snapshot.run->processes = {{4711, 0.6}, {4712, 0.02}};
  Histories histories;
  histories.add(snapshot);
  const std::string text = text_of(layout(snapshot, histories, {}, 50, 100));
  EXPECT_THAT(text, AllOf(HasSubstr("gpu0  H200"), HasSubstr("kernels ran"), HasSubstr("200 of 400 W"),
                          HasSubstr("step 7"), HasSubstr("disk wait"), HasSubstr("4.0 of 8"), HasSubstr("input wait"),
                          HasSubstr("2 processes train; input wait 2.0 % (4712) to 60 % (4711)")));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("SMs active")), Not(HasSubstr("\x1b")), Not(HasSubstr("\u009b")),
                          Not(HasSubstr("\u202e")), Not(HasSubstr("\xff"))));
  EXPECT_LT(text.find("python"), text.find("evil")) << "by CPU";
  ViewState by_memory;
  by_memory.sort = SortBy::kMemory;
  by_memory.unicode = false;
  const std::string other = text_of(layout(snapshot, histories, by_memory, 50, 100));
  EXPECT_GT(other.find("python"), other.find("evil"));
  EXPECT_THAT(other, HasSubstr("###"));
  EXPECT_TRUE(std::all_of(other.begin(), other.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

TEST(ScreenTest, FitsAnySize) {
  Snapshot snapshot = with_gpu(0, 0.5);
  Histories histories;
  for (int i = 0; i < 500; ++i) {
    histories.add(snapshot);
  }
  EXPECT_LE(histories.of("gpu0.utilisation").size(), 240U);
  ViewState state;
  state.help = true;
  for (int columns = 0; columns < 160; columns += 7) {
    for (int rows = 0; rows < 30; rows += 3) {
      state.language = rows % 2 == 0 ? Language::kEnglish : Language::kChinese;
      const auto lines = layout(snapshot, histories, state, rows, columns);
      EXPECT_LE(lines.size(), static_cast<std::size_t>(rows));
      for (const ScreenLine& line : lines) {
        int width = 0;
        for (const Span& span : line) {
          width += display_width(span.text);
        }
        EXPECT_LE(width, columns);
      }
    }
  }
}

TEST(ScreenTest, SortGoesRound) {
  SortBy sort = SortBy::kCpu;
  for (int i = 0; i < 4; ++i) {
    sort = next(sort);
  }
  EXPECT_EQ(sort, SortBy::kCpu);
}

TEST(ExporterTest, NamesUnitsAndAbsence) {
  Snapshot snapshot = with_gpu(0, 0.5);
  snapshot.gpus[0].name = "quote\" back\\slash";
  snapshot.gpus[0].reading.sm_clock_mhz = 1980;
  snapshot.gpus[0].reading.energy_j = 5;
  const std::string text = prometheus_text(snapshot);
  EXPECT_THAT(text, AllOf(HasSubstr("unidle_gpu_utilisation_ratio{gpu=\"gpu0\"} 0.5\n"),
                          HasSubstr("unidle_gpu_sm_clock_hertz{gpu=\"gpu0\"} 1980000000\n"),
                          HasSubstr("# TYPE unidle_gpu_energy_joules_total counter\n"),
                          HasSubstr("name=\"quote\\\" back\\\\slash\"")));
  EXPECT_THAT(text, Not(HasSubstr("sm_activity"))) << "absent is no sample";
}

TEST(ExporterTest, Addresses) {
  for (const char* address : {"nonsense", "127.0.0.1:70000", "127.0.0.1:", "1:2x"}) {
    try {
      const Exporter exporter(address);
      FAIL() << address;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage) << address;
    }
  }
  const Exporter exporter("0");
  EXPECT_THAT(exporter.url(), StartsWith("http://127.0.0.1:"));
  const std::string url = exporter.url();
  const std::string port = url.substr(17, url.rfind('/') - 17);
  try {
    const Exporter second("127.0.0.1:" + port);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
  }
}

class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest() { ::setenv("UNIDLE_HOME", (folder_.path() / "home").c_str(), 1); }
  ~CollectorTest() override {
    ::unsetenv("UNIDLE_HOME");
    ::unsetenv("UNIDLE_NVML_LIBRARY");
    ::unsetenv("UNIDLE_FAKE_NVML_SCRIPT");
  }
  void use_fake(const std::string& script) {
    std::ofstream(folder_.path() / "script") << script;
    ::setenv("UNIDLE_FAKE_NVML_SCRIPT", (folder_.path() / "script").c_str(), 1);
    ::setenv("UNIDLE_NVML_LIBRARY", UNIDLE_FAKE_NVML, 1);
  }
  /// A record of ten steps of 100 ms, each with 40 ms of waiting.
  std::unique_ptr<record::Writer> record_of(const std::string& name, std::int64_t pid) {
    auto writer = std::make_unique<record::Writer>(folder_.path() / "home/runs" / name);
    writer->set_meta(record::meta::kPid, pid);
    for (int i = 0; i < 10; ++i) {
      record::Step step;
      step.process = pid;
      step.index = i;
      step.t_ns = kNsPerSecond + i * 100 * kNsPerMs;
      step.duration_ns = 100 * kNsPerMs;
      step.samples = 4;
      step.input_ns = 40 * kNsPerMs;
      step.loss = 0.5;
      writer->add(step);
    }
    writer->flush();
    return writer;
  }

  TemporaryFolder folder_;
  Clock& clock_ = system_clock();
};

TEST_F(CollectorTest, RunUnderWay) {
  EXPECT_FALSE(read_run_under_way().has_value());
  const auto older = record_of("20260101-000000-a", ::getpid());
  auto newer = record_of("20260102-000000-b", ::getpid());
  const auto run = read_run_under_way();
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->folder.filename(), "20260102-000000-b");
  EXPECT_EQ(run->step, 9);
  EXPECT_DOUBLE_EQ(run->steps_per_s.value_or(0), 10);
  EXPECT_DOUBLE_EQ(run->samples_per_s.value_or(0), 40);
  EXPECT_DOUBLE_EQ(run->input_share.value_or(0), 0.4);
  newer->set_meta(record::meta::kEndNs, 5);
  newer->flush();
  EXPECT_EQ(read_run_under_way()->folder.filename(), "20260101-000000-a") << "the newer one has ended";
}

TEST_F(CollectorTest, ARunWhoseCommandIsGoneIsNotUnderWay) {
  const auto writer = record_of("20260101-000000-a", 999'999'999);
  EXPECT_FALSE(read_run_under_way().has_value());
}

TEST_F(CollectorTest, WatchesTheTreeOfTheRun) {
  const auto writer = record_of("20260101-000000-a", ::getpid());
  Collector collector(clock_, {});
  const Snapshot snapshot = collector.take();
  EXPECT_EQ(snapshot.pid, ::getpid());
  ASSERT_FALSE(snapshot.processes.empty());
  EXPECT_EQ(snapshot.processes[0].pid, ::getpid());
  EXPECT_FALSE(snapshot.tree_cpu.has_value()) << "one reading is no rate";
}

TEST_F(CollectorTest, AProcessThatTookANumberOverBeginsAnew) {
  const fs::path process = folder_.path() / "proc/77";
  fs::create_directories(process);
  const auto put = [&](int used_s, int start_ticks) {
    std::ofstream(process / "stat") << "77 (python) R 1 1 1 0 -1 0 0 0 0 0 " << used_s * ::sysconf(_SC_CLK_TCK)
                                    << " 0 0 0 20 0 1 0 " << start_ticks << " 1000000 10 0\n";
    std::ofstream(process / "cmdline") << "python train.py";
  };
  ::setenv("UNIDLE_HOST_ROOT", folder_.path().c_str(), 1);
  unidle::testing::FakeClock clock;
  put(50, 555);
  Collector collector(clock, {77, {}});
  collector.take();
  clock.advance(2 * kNsPerSecond);
  put(53, 555);
  const Snapshot same = collector.take();
  clock.advance(2 * kNsPerSecond);
  put(1, 999);
  const Snapshot other = collector.take();
  ::unsetenv("UNIDLE_HOST_ROOT");
  ASSERT_EQ(same.processes.size(), 1U);
  EXPECT_DOUBLE_EQ(same.processes[0].cpu.value_or(-1), 1.5);
  EXPECT_DOUBLE_EQ(other.processes.at(0).cpu.value_or(-1), 0.5);
  EXPECT_DOUBLE_EQ(other.tree_cpu.value_or(-1), 0.5);
}

TEST_F(CollectorTest, AProcessThatDoesNotExist) {
  try {
    const Collector collector(clock_, {999'999'999, {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
  }
}

/// NVML in MIG mode reports utilisation neither for the device nor for a slice.
TEST_F(CollectorTest, OfASliceIsSaidWhatNobodyCanRead) {
  use_fake(
      "count 1\nname H200\nmemory 100:50\nmig 1\nmig_count 7\n0/0.name 3g.71gb\n0/0.memory 40:10\n"
      "0/0.gpu_instance 3\n0/1.name 1g.18gb\n0/1.memory 10:1\n");
  Collector collector(clock_, {});
  const Snapshot now = collector.take();
  ASSERT_EQ(now.gpus.size(), 3U);
  EXPECT_EQ(now.gpus[1].subject, "gpu0/mig0");
  EXPECT_EQ(now.gpus[1].name, "3g.71gb");
  EXPECT_EQ(now.gpus[1].memory_total_bytes, 40);
  EXPECT_EQ(now.gpus[2].memory_total_bytes, 10);
  for (const GpuNow& gpu : now.gpus) {
    EXPECT_THAT(std::string(gpu.why_busy_unknown()), HasSubstr("MIG")) << gpu.subject;
  }
  EXPECT_THAT(plain_lines(now), HasSubstr("not known, NVML has no utilisation in MIG mode"));
  Summary summary;
  summary.add(now);
  EXPECT_THAT(summary.to_text(200), HasSubstr("NVML tells of no MIG slice how busy it is"));
}

TEST_F(CollectorTest, WhatASliceCountsIsShown) {
  use_fake(
      "count 1\nmemory 100:50\nmig 1\nmig_count 1\n0/0.memory 40:10\n0/0.gpu_instance 3\n0/0.name 3g\ngpm 1\n"
      "mig_gpm.2 25\n");
  unidle::testing::FakeClock clock;
  Collector collector(clock, {});
  EXPECT_FALSE(collector.take().gpus.back().why_busy_unknown().empty()) << "GPM's first answer takes two samples";
  clock.advance(kNsPerSecond);
  const GpuNow slice = collector.take().gpus.back();
  EXPECT_EQ(slice.reading.sm_activity, 0.25);
  EXPECT_TRUE(slice.why_busy_unknown().empty());
}

TEST_F(CollectorTest, LastReadingHoldsForAMomentAndNotForever) {
  use_fake(
      "count 1\nname H200\nmemory 100:50\nutilisation 50 50 error:15 error:15 error:15 error:15\npcie 4:16:4:16\n");
  Collector collector(clock_, {});
  const Snapshot first = collector.take();
  ASSERT_EQ(first.gpus.size(), 1U);
  EXPECT_EQ(first.gpus[0].name, "H200");
  EXPECT_EQ(first.gpus[0].reading.utilisation, 0.5);
  EXPECT_EQ(first.gpus[0].reading.pcie_width, 16);
  EXPECT_FALSE(first.gpus[0].reading.power_w.has_value());
  const Snapshot second = collector.take();
  EXPECT_EQ(second.gpus[0].reading.pcie_width, 16) << "asked once a second";
}

}  // namespace
}  // namespace unidle::monitor
