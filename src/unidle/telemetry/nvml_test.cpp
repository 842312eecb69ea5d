#include "unidle/telemetry/nvml.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>

#include "unidle/base/files.h"
#include "unidle/telemetry/gpu.h"

namespace unidle::telemetry {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NvmlTest : public ::testing::Test {
 protected:
  ~NvmlTest() override {
    ::unsetenv("UNIDLE_NVML_LIBRARY");
    ::unsetenv("UNIDLE_FAKE_NVML_SCRIPT");
  }

  std::unique_ptr<Nvml> load(const std::string& script) {
    const auto path = folder_.path() / "script";
    std::ofstream(path) << script;
    ::setenv("UNIDLE_FAKE_NVML_SCRIPT", path.c_str(), 1);
    ::setenv("UNIDLE_NVML_LIBRARY", UNIDLE_FAKE_NVML, 1);
    return Nvml::load(reason_);
  }

  TemporaryFolder folder_;
  std::string reason_;
};

TEST_F(NvmlTest, ReadsWhatTheLibraryAnswers) {
  const auto nvml = load(
      "count 2\n0.name H200\n1.name A100\nmemory 1000:400\n0.memory_v2 1000:300\nutilisation 73\npower 250500\n"
      "power_limit 700000\ntemperature 55\nclock 1980\ncapability 9.0\nprocesses 7:100,8\n");
  ASSERT_NE(nvml, nullptr) << reason_;
  EXPECT_EQ(*nvml->count(), 2U);
  EXPECT_EQ(*nvml->name(0), "H200");
  EXPECT_EQ(*nvml->name(1), "A100");
  EXPECT_EQ((*nvml->memory(0)).used_bytes, 300U);
  EXPECT_EQ((*nvml->memory(1)).used_bytes, 400U) << "falls back to the first version";
  EXPECT_DOUBLE_EQ(*nvml->utilisation(0), 0.73);
  EXPECT_DOUBLE_EQ((*nvml->power(0)).w, 250.5);
  EXPECT_DOUBLE_EQ(*nvml->power_limit_w(0), 700);
  EXPECT_DOUBLE_EQ(*nvml->temperature_c(0), 55);
  EXPECT_DOUBLE_EQ(*nvml->sm_clock_mhz(0), 1980);
  EXPECT_EQ(*nvml->capability(0), "9.0");
  const auto processes = nvml->compute_processes(0);
  ASSERT_THAT(*processes, SizeIs(2));
  EXPECT_EQ((*processes)[0].used_bytes, 100U);
  EXPECT_FALSE((*processes)[1].used_bytes.has_value());
}

TEST_F(NvmlTest, MissingIsNotZero) {
  const auto nvml = load("count 1\nutilisation 0\nprocesses none\n");
  EXPECT_EQ(nvml->utilisation(0).value, 0.0);
  EXPECT_THAT(*nvml->compute_processes(0), IsEmpty());
  const auto power = nvml->power(0);
  EXPECT_FALSE(power);
  EXPECT_THAT(power.reason, HasSubstr("Not Supported"));
  EXPECT_FALSE(nvml->memory(0));
  EXPECT_FALSE(nvml->name(0));
}

TEST_F(NvmlTest, LostDeviceIsAGapAndMayComeBack) {
  const auto nvml = load("count 1\nutilisation 10 error:15 20\nhandle 0 error:15 0\n");
  EXPECT_TRUE(nvml->utilisation(0));
  const auto lost = nvml->utilisation(0);
  EXPECT_FALSE(lost);
  EXPECT_THAT(lost.reason, HasSubstr("15"));
  EXPECT_FALSE(nvml->utilisation(0)) << "its handle is refused";
  EXPECT_DOUBLE_EQ(*nvml->utilisation(0), 0.2);
}

TEST_F(NvmlTest, ManyProcessesAreListedWhole) {
  std::string list = "count 1\nprocesses 1:1";
  for (int pid = 2; pid <= 500; ++pid) {
    list += "," + std::to_string(pid) + ":1";
  }
  const auto nvml = load(list + "\n");
  EXPECT_THAT(*nvml->compute_processes(0), SizeIs(500));
}

TEST_F(NvmlTest, FailingCountAndInit) {
  EXPECT_FALSE(load("count error:999\n")->count());
  EXPECT_EQ(load("init error:9\n"), nullptr);
  EXPECT_THAT(reason_, HasSubstr("9"));
}

TEST_F(NvmlTest, AbsentOrForeignLibraryIsAReason) {
  ::setenv("UNIDLE_NVML_LIBRARY", "/nowhere/libnvidia-ml.so", 1);
  EXPECT_EQ(Nvml::load(reason_), nullptr);
  EXPECT_THAT(reason_, HasSubstr("/nowhere"));
  ::setenv("UNIDLE_NVML_LIBRARY", "libm.so.6", 1);
  EXPECT_EQ(Nvml::load(reason_), nullptr);
  EXPECT_THAT(reason_, HasSubstr("nvmlInit"));
}

TEST_F(NvmlTest, OldDriverWithoutOptionalSymbols) {
  ::setenv("UNIDLE_NVML_LIBRARY", UNIDLE_FAKE_NVML_OLD, 1);
  const auto nvml = Nvml::load(reason_);
  ASSERT_NE(nvml, nullptr) << reason_;
  EXPECT_EQ(*nvml->count(), 1U);
  EXPECT_FALSE(nvml->name(0));
  EXPECT_FALSE(nvml->memory(0));
  EXPECT_FALSE(nvml->power(0));
  EXPECT_FALSE(nvml->capability(0));
  const auto processes = nvml->compute_processes(0);
  ASSERT_THAT(*processes, SizeIs(2));
  EXPECT_EQ((*processes)[1].pid, 42);
  EXPECT_EQ((*processes)[1].used_bytes, 2000U);
}

TEST_F(NvmlTest, ProcessesAreReadByTheLengthThatTheDriverGivesThem) {
  for (const char* bytes : {"16", "24", "32"}) {
    const auto nvml = load(std::string("count 1\nprocesses 41:1000,42:2000,43:3000\nprocess_bytes ") + bytes + "\n");
    const auto processes = nvml->compute_processes(0);
    ASSERT_THAT(*processes, SizeIs(3)) << bytes;
    EXPECT_EQ((*processes)[1].pid, 42) << bytes;
    EXPECT_EQ((*processes)[2].used_bytes, 3000U) << bytes;
    EXPECT_FALSE((*processes)[2].gpu_instance) << bytes;
  }
}

TEST_F(NvmlTest, AFunctionThatTheDriverDoesNotKnowIsAskedForByItsOlderName) {
  for (const char* lacking : {"processes_v3 error:13", "processes_v3 error:13\nprocesses_v2 error:13"}) {
    const auto nvml = load(std::string("count 1\nprocesses 41:1000,42:2000 41:1500\n") + lacking + "\n");
    const auto processes = nvml->compute_processes(0);
    ASSERT_TRUE(processes) << lacking << ": " << processes.reason;
    ASSERT_THAT(*processes, SizeIs(2)) << lacking;
    EXPECT_EQ((*processes)[1].pid, 42) << lacking;
    EXPECT_EQ((*nvml->compute_processes(0))[0].used_bytes, 1500U) << lacking;
  }
}

TEST_F(NvmlTest, FactsAndSource) {
  auto nvml =
      load("count 2\nname H200\nmemory 1000:400\ncapability 9.0\nutilisation 50\n0.power 1000\n1.power error:15\n");
  const std::vector<GpuFacts> facts = read_gpu_facts(*nvml);
  ASSERT_THAT(facts, SizeIs(2));
  EXPECT_EQ(facts[1].memory_bytes, 1000U);
  EXPECT_EQ(facts[1].capability, "9.0");
  std::vector<std::string> seen;
  gpu_source(std::move(nvml))->read(1, [&](const Reading& reading) {
    seen.push_back(std::string(reading.name) + " " + reading.subject);
  });
  EXPECT_THAT(seen, ::testing::ElementsAre("gpu.utilisation gpu0", "gpu.memory gpu0", "gpu.power gpu0",
                                           "gpu.utilisation gpu1", "gpu.memory gpu1"));
}

}  // namespace
}  // namespace unidle::telemetry
