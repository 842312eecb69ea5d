#include "unidle/telemetry/gpu.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <map>

#include "unidle/base/testing/machine_files.h"

namespace unidle::telemetry {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::int64_t kStep = kNsPerSecond;

class GpuTest : public unidle::testing::MachineFiles {
 protected:
  ~GpuTest() override {
    ::unsetenv("UNIDLE_NVML_LIBRARY");
    ::unsetenv("UNIDLE_FAKE_NVML_SCRIPT");
  }

  std::unique_ptr<Nvml> load(const std::string& script) {
    put("script", script);
    ::setenv("UNIDLE_FAKE_NVML_SCRIPT", (root() / "script").c_str(), 1);
    ::setenv("UNIDLE_NVML_LIBRARY", UNIDLE_FAKE_NVML, 1);
    std::string reason;
    auto nvml = Nvml::load(reason);
    EXPECT_NE(nvml, nullptr) << reason;
    return nvml;
  }
};

TEST_F(GpuTest, UtilisationOutOfTheDriversSamples) {
  const auto nvml = load("count 1\nsamples 10:90,20:90 20:90,30:40,40:60 40:60 error:15\nutilisation 1\n");
  EXPECT_FALSE(nvml->utilisation_since(0)) << "what was before nobody watched is not ours";
  EXPECT_DOUBLE_EQ(*nvml->utilisation_since(0), 0.5) << "only samples that are new";
  EXPECT_FALSE(nvml->utilisation_since(0)) << "none is new";
  EXPECT_FALSE(nvml->utilisation_since(0)) << "the device is lost";
}

TEST_F(GpuTest, SamplesThatAreNotSupportedFallBackToTheRate) {
  const auto reader = nvml_reader(load("count 1\nutilisation 37\n"));
  EXPECT_EQ(reader->read(1, false).at(0).reading.utilisation, 0.37);
}

TEST_F(GpuTest, PowerByFieldAndItsFallback) {
  const auto nvml = load("count 2\n0.field.185 300000\n0.field.186 410000\npower 200000\nenergy 5000\n");
  EXPECT_DOUBLE_EQ((*nvml->power(0)).w, 300);
  EXPECT_DOUBLE_EQ((*nvml->power(0)).instant_w.value_or(0), 410);
  EXPECT_DOUBLE_EQ((*nvml->power(1)).w, 200) << "no field: the older call";
  EXPECT_FALSE((*nvml->power(1)).instant_w.has_value());
  EXPECT_EQ(nvml->energy_j(0).value, 5);
}

TEST_F(GpuTest, GpmNeedsTwoSamplesFarEnoughApart) {
  const auto nvml = load("count 1\ngpm 1\ngpm.2 50\ngpm.5 0\ngpm.20 2\n");
  EXPECT_FALSE(nvml->gpm(0, 0).sm) << "one sample says nothing";
  EXPECT_FALSE(nvml->gpm(0, nvml::kGpmSpacing_ns).sm) << "not further apart than the driver needs";
  const GpmActivity activity = nvml->gpm(0, nvml::kGpmSpacing_ns + 1);
  EXPECT_EQ(activity.sm, 0.5);
  EXPECT_EQ(activity.tensor, 0.0) << "a measured zero";
  EXPECT_FALSE(activity.dram) << "not offered";
  EXPECT_EQ(activity.pcie_tx_bytes_s, 2.0 * 1024 * 1024);
  EXPECT_FALSE(nvml->gpm(0, nvml::kGpmSpacing_ns + 2).sm);
  EXPECT_TRUE(nvml->gpm(0, 3 * nvml::kGpmSpacing_ns).sm);
}

TEST_F(GpuTest, GpmThatIsRefusedStaysAbsent) {
  const auto unsupported = load("count 1\ngpm 0\ngpm.2 50\n");
  unsupported->gpm(0, 0);
  EXPECT_FALSE(unsupported->gpm(0, kStep).sm);
  const auto forbidden = load("count 1\ngpm 1\ngpm_sample error:4\ngpm.2 50\n");
  forbidden->gpm(0, 0);
  EXPECT_FALSE(forbidden->gpm(0, kStep).sm);
  EXPECT_FALSE(forbidden->gpm(0, 2 * kStep).sm);
}

TEST_F(GpuTest, GpmOfADeviceThatComesBackStartsAnew) {
  const auto nvml = load("count 1\ngpm 1\ngpm_sample 0 error:15 0 0\ngpm.2 50\n");
  nvml->gpm(0, 0);
  EXPECT_FALSE(nvml->gpm(0, kStep).sm);
  EXPECT_FALSE(nvml->gpm(0, 2 * kStep).sm) << "its first sample";
  EXPECT_TRUE(nvml->gpm(0, 3 * kStep).sm);
}

TEST_F(GpuTest, ProcessesWithShares) {
  const auto nvml = load("count 1\nprocesses 7:100,8:200\nprocess_use 7:10:30,7:20:50 7:20:50 error:3\n");
  auto processes = *nvml->compute_processes(0);
  ASSERT_THAT(processes, SizeIs(2));
  EXPECT_EQ(processes[0].share, 0.4);
  EXPECT_EQ(processes[1].share, 0.0) << "it is there and ran nothing";
  EXPECT_EQ((*nvml->compute_processes(0))[0].share, 0.0) << "nothing new since";
  EXPECT_FALSE((*nvml->compute_processes(0))[0].share) << "not kept is not zero";
}

TEST_F(GpuTest, XidsOfTheirDevice) {
  auto reader = nvml_reader(load("count 2\nutilisation 5\nxid 1:79 none 0:31\n"));
  auto subjects = reader->read(0, true);
  EXPECT_FALSE(subjects.at(0).reading.xid) << "handles are known from the first reading on";
  EXPECT_EQ(subjects.at(1).reading.xid, 79);
  subjects = reader->read(kStep, true);
  EXPECT_EQ(subjects.at(0).reading.xid, 31);
  EXPECT_FALSE(subjects.at(1).reading.xid);
}

TEST_F(GpuTest, MigSlicesAreSubjects) {
  auto reader = nvml_reader(
      load("count 2\n0.mig 1\n1.mig 0\nmig_count 7\n0/0.name 3g.40gb\n0/0.memory 40:10\n0/0.gpu_instance 3\n"
           "0/0.multiprocessors 60\n0/2.name 1g.10gb\n0/2.memory 10:1\nmig_gpm.2 25\nutilisation 9\n"));
  const std::vector<GpuFacts> facts = reader->facts();
  ASSERT_THAT(facts.at(0).mig, SizeIs(2));
  EXPECT_EQ(facts[0].mig[0].name, "3g.40gb");
  EXPECT_EQ(facts[0].mig[0].multiprocessors, 60U);
  EXPECT_FALSE(facts[0].mig[1].gpu_instance.has_value());
  EXPECT_THAT(facts.at(1).mig, IsEmpty());
  reader->read(0, true);
  std::map<std::string, GpuReading> subjects;
  for (const auto& subject : reader->read(kStep, true)) {
    subjects[subject.name] = subject.reading;
  }
  ASSERT_THAT(subjects, SizeIs(4));
  EXPECT_EQ(subjects["gpu0/mig0"].sm_activity, 0.25);
  EXPECT_EQ(subjects["gpu0/mig0"].memory_bytes, 10);
  EXPECT_FALSE(subjects["gpu0/mig2"].sm_activity);
  EXPECT_FALSE(subjects["gpu0/mig0"].utilisation) << "the whole device's is not the slice's";
}

TEST_F(GpuTest, StatesAndLink) {
  const auto nvml = load(
      "count 1\ndriver 570.86\ncuda 12080\nuuid GPU-1\npci 0:0x1b:0\npcie 3:8:5:16\npcie_rx 2048\necc 1\n"
      "ecc_errors 2\nrows 1:0\npersistence 0\ncompute_mode 3\nthrottle 0x24\nmax_clock 1980\npower_default 700000\n");
  EXPECT_EQ(nvml->driver_version().value, "570.86");
  EXPECT_EQ(nvml->cuda_version().value, "12.8");
  EXPECT_EQ(nvml->pci_bus_id(0).value, "0000:1b:00.0");
  const Pcie link = nvml->pcie(0);
  EXPECT_EQ(link.generation, 3U);
  EXPECT_EQ(link.max_width, 16U);
  EXPECT_EQ(nvml->pcie_bytes_s(0, true).value, 2048.0 * 1024);
  EXPECT_FALSE(nvml->pcie_bytes_s(0, false));
  EXPECT_EQ(nvml->ecc_uncorrected(0).value, 2U);
  EXPECT_EQ(nvml->rows_pending(0).value, true);
  EXPECT_EQ(nvml->rows_failed(0).value, false);
  EXPECT_EQ(nvml->persistence_mode(0).value, false);
  EXPECT_EQ(nvml->compute_mode(0).value, 3U);
  EXPECT_THAT(throttle_names(*nvml->throttle_reasons(0)), ElementsAre("power limit", "temperature (driver)"));
  EXPECT_THAT(throttle_names(nvml::kReasonIdle | nvml::kReasonApplicationClocks), IsEmpty());
  EXPECT_EQ(nvml->sm_clock_max_mhz(0).value, 1980);
}

TEST(GpusHidden, WhatDoesNotBeginWithADeviceShowsNone) {
  for (const char* value : {"", " ", "-1", "-1,0", "NoDevFiles", "void", "none"}) {
    EXPECT_TRUE(hides_every_gpu(value)) << value;
  }
  for (const char* value : {"0", "3,1", " 2", "0,-1", "GPU-11112222", "MIG-33334444"}) {
    EXPECT_FALSE(hides_every_gpu(value)) << value;
  }
}

TEST_F(GpuTest, LocalityBySysfs) {
  put("sys/bus/pci/devices/0000:1b:00.0/numa_node", "1\n");
  put("sys/bus/pci/devices/0000:1b:00.0/local_cpulist", "32-63\n");
  GpuFacts facts;
  facts.pci_bus_id = "0000:1b:00.0";
  add_locality(facts, root());
  EXPECT_EQ(facts.numa_node, 1);
  EXPECT_EQ(facts.local_cpus, "32-63");
  put("sys/bus/pci/devices/0000:1b:00.0/numa_node", "-1\n");
  GpuFacts unknown;
  unknown.pci_bus_id = facts.pci_bus_id;
  add_locality(unknown, root());
  EXPECT_FALSE(unknown.numa_node.has_value());
}

TEST_F(GpuTest, LostDeviceLeavesTheOthersAlone) {
  auto reader = nvml_reader(load("count 2\n0.handle error:15\nutilisation 50\npower 100000\n"));
  const auto subjects = reader->read(0, true);
  ASSERT_THAT(subjects, SizeIs(2));
  EXPECT_FALSE(subjects[0].reading.utilisation);
  EXPECT_FALSE(subjects[0].reading.power_w);
  EXPECT_EQ(subjects[1].reading.utilisation, 0.5);
}

TEST_F(GpuTest, AmdBySysfs) {
  put("sys/class/drm/card1/device/vendor", "0x1002\n");
  put("sys/class/drm/card1/device/gpu_busy_percent", "64\n");
  put("sys/class/drm/card1/device/mem_info_vram_total", "68702699520\n");
  put("sys/class/drm/card1/device/mem_info_vram_used", "1000\n");
  put("sys/class/drm/card1/device/product_name", "Instinct MI210\n");
  put("sys/class/drm/card1/device/current_link_speed", "8.0 GT/s PCIe\n");
  put("sys/class/drm/card1/device/max_link_speed", "16.0 GT/s PCIe\n");
  put("sys/class/drm/card1/device/max_link_width", "16\n");
  put("sys/class/drm/card1/device/hwmon/hwmon4/power1_average", "90000000\n");
  put("sys/class/drm/card1/device/hwmon/hwmon4/power1_cap", "300000000\n");
  put("sys/class/drm/card1/device/hwmon/hwmon4/temp1_input", "41000\n");
  put("sys/class/drm/card0/device/vendor", "0x1a03\n");  // a server's VGA chip
  put("sys/class/drm/card2/device/vendor", "0x1002\n");  // integrated graphics
  put("sys/class/drm/card1-DP-1/device/vendor", "0x1002\n");
  const auto reader = amd_reader(2, root());
  ASSERT_NE(reader, nullptr);
  const auto facts = reader->facts();
  ASSERT_THAT(facts, SizeIs(1));
  EXPECT_EQ(facts[0].index, 2U);
  EXPECT_EQ(facts[0].kind, "rocm");
  EXPECT_EQ(facts[0].name, "Instinct MI210");
  EXPECT_EQ(facts[0].pcie.generation, 3U);
  EXPECT_EQ(facts[0].pcie.max_generation, 4U);
  EXPECT_EQ(facts[0].power_limit_w, 300);
  const auto subjects = reader->read(0, true);
  EXPECT_EQ(subjects.at(0).name, "gpu2");
  EXPECT_EQ(subjects.at(0).reading.utilisation, 0.64);
  EXPECT_EQ(subjects.at(0).reading.power_w, 90);
  EXPECT_EQ(subjects.at(0).reading.temperature_c, 41);
  EXPECT_FALSE(subjects.at(0).reading.sm_clock_mhz);
  EXPECT_EQ(amd_reader(0, root() / "nothing"), nullptr);
}

TEST_F(GpuTest, NoDriverIsKnownToBeNone) {
  ::setenv("UNIDLE_NVML_LIBRARY", (root() / "libnvidia-ml.so.1").c_str(), 1);
  GpuInventory none = find_gpus(root());
  EXPECT_TRUE(none.known);
  EXPECT_EQ(none.nvml_failure, NvmlFailure::kNotInstalled);
  EXPECT_THAT(none.readers, IsEmpty());
  put("libnvidia-ml.so.1", "this is no library");
  const GpuInventory broken = find_gpus(root());
  EXPECT_FALSE(broken.known);
  EXPECT_EQ(broken.nvml_failure, NvmlFailure::kUnusable);
  load("count error:999\n");
  EXPECT_FALSE(find_gpus(root()).known);
}

TEST_F(GpuTest, SourceGivesEverySeriesOnce) {
  std::map<std::string, double> seen;
  const auto source = gpu_source(
      load("count 1\nutilisation 50\nmemory 100:40\npower 90000\npower_limit 100000\ntemperature 40\nclock 1000\n"
           "pcie 4:16:4:16\npcie_rx 10\nthrottle 0\n"));
  const auto sink = [&](const Reading& reading) { seen[std::string(reading.name)] = reading.value; };
  source->read(1, sink);
  EXPECT_THAT(seen, SizeIs(11));
  EXPECT_EQ(seen["gpu.throttle_reasons"], 0);
  EXPECT_EQ(seen["gpu.pcie_rx"], 10240);
  seen.clear();
  source->read(2, sink);
  EXPECT_EQ(seen.count("gpu.pcie_rx"), 0U) << "it makes the driver wait: once a second";
  EXPECT_EQ(seen.count("gpu.temperature"), 0U);
  EXPECT_EQ(seen.count("gpu.utilisation"), 1U);
  EXPECT_EQ(seen.count("gpu.power"), 1U);
}

TEST_F(GpuTest, WhatTheDriverMeasuresIn20MsIsNotMixedWithMeans) {
  std::map<std::string, double> seen;
  const auto source =
      gpu_source(load("count 1\nutilisation 50\nmemory 100:40\npcie_rx 10\ngpm 1\ngpm_sample 1\n"
                      "gpm.2 50\ngpm.20 1\ngpm.21 2\n"));
  const auto sink = [&](const Reading& reading) { seen[std::string(reading.name)] = reading.value; };
  source->read(1, sink);
  EXPECT_EQ(seen.count("gpu.pcie_rx"), 0U) << "GPM answers from the second reading on";
  source->read(2 * kNsPerSecond, sink);
  EXPECT_EQ(seen["gpu.pcie_rx"], 2.0 * 1024 * 1024);
}

TEST_F(GpuTest, ADeviceThatPermissionHidesIsNotLost) {
  auto nvml = load("count 2\n1.handle error:4\nname H100\n");
  EXPECT_FALSE(nvml->hidden(0));
  EXPECT_TRUE(nvml->hidden(1));
  EXPECT_TRUE(read_gpu_facts(*nvml)[1].hidden);
  EXPECT_FALSE(load("count 1\nhandle error:15\n")->hidden(0)) << "that one is lost";
}

}  // namespace
}  // namespace unidle::telemetry
