#include "unidle/check/check.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <sstream>

#include "unidle/base/error.h"
#include "unidle/base/layout.h"
#include "unidle/base/testing/machine_files.h"
#include "unidle/check/speed.h"

namespace unidle::check {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// A machine without problems.
Machine good() {
  Machine machine;
  machine.host.cpus_online = machine.host.cpus_affinity = 16;
  machine.host.cpu_flags = {"avx512_bf16"};
  machine.host.memory_bytes = 64 * kGiB;
  machine.affinity = "0-15";
  machine.memory.available_bytes = 32 * kGiB;
  machine.memory.shm_bytes = machine.memory.shm_free_bytes = 32 * kGiB;
  machine.nvml_failure = telemetry::NvmlFailure::kNone;
  GpuState& gpu = machine.gpus.emplace_back();
  gpu.facts.memory_bytes = 80 * kGiB;
  gpu.facts.power_limit_w = gpu.power_default_limit_w = 700;
  gpu.facts.pcie = {5, 16, 5, 16};
  gpu.facts.local_cpus = "0-15";
  gpu.reading.throttle_reasons = 0;
  gpu.reading.ecc_uncorrected = 0;
  gpu.reading.temperature_c = 40;
  gpu.slowdown_temperature_c = 90;
  gpu.processes.emplace();
  gpu.persistence = true;
  return machine;
}

/// The level of a problem; "none" when it is absent.
std::string level_of(const Machine& machine, const std::string& id) {
  for (const Problem& problem : find_problems(machine)) {
    if (problem.id == id) {
      return std::string(to_string(problem.level));
    }
  }
  return "none";
}

TEST(CheckTest, TheLanguageChangesNoProblem) {
  Machine machine;
  machine.host.cpus_online = 16;
  machine.host.cpus_affinity = 8;
  machine.governor = "powersave";
  machine.environment = {{"OMP_NUM_THREADS", "64"}, {"CUDA_LAUNCH_BLOCKING", "1"}};
  machine.storage.push_back({"/data", "nfs4", "", "network", {}, {}});
  const std::vector<Problem> english = find_problems(machine);
  const std::vector<Problem> chinese = find_problems(machine, Language::kChinese);
  ASSERT_EQ(english.size(), chinese.size());
  for (std::size_t i = 0; i < english.size(); ++i) {
    EXPECT_EQ(english[i].id, chinese[i].id);
    EXPECT_EQ(english[i].level, chinese[i].level);
    EXPECT_EQ(english[i].subject, chinese[i].subject);
    EXPECT_NE(english[i].message, chinese[i].message);
  }
}

TEST(CheckTest, LinesOfWideCharactersKeepToTheWidth) {
  Machine machine = good();
  machine.host.cpu_quota = 2;
  for (const int width : {40, 80, 120}) {
    std::istringstream text(
        to_text(machine, find_problems(machine, Language::kChinese), nullptr, width, Language::kChinese));
    for (std::string line; std::getline(text, line);) {
      EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST(CheckTest, GoodMachineHasNoProblem) {
  EXPECT_THAT(find_problems(good()), IsEmpty());
  EXPECT_EQ(exit_code(find_problems(good())), 0);
}

TEST(CheckTest, WhatIsMissingIsNoProblem) {
  Machine machine = good();
  machine.memory = {};
  GpuState& gpu = machine.gpus[0];
  gpu = GpuState{};
  EXPECT_THAT(find_problems(machine), IsEmpty());
}

TEST(CheckTest, CpuLimits) {
  Machine machine = good();
  machine.host.cpu_quota = 16;
  EXPECT_EQ(level_of(machine, "cpu-quota"), "none") << "a quota of all CPUs is none";
  machine.host.cpu_quota = 6.5;
  EXPECT_EQ(level_of(machine, "cpu-quota"), "warning");
  EXPECT_EQ(level_of(machine, "cpu-few"), "none");
  machine.host.cpu_quota = 2;
  EXPECT_EQ(level_of(machine, "cpu-few"), "warning");
  machine.gpus.clear();
  EXPECT_EQ(level_of(machine, "cpu-few"), "none");
  machine = good();
  machine.host.cpus_affinity = 8;
  EXPECT_EQ(level_of(machine, "cpu-affinity"), "info");
  machine.cgroup.periods = 1000;
  machine.cgroup.throttled_periods = 50;
  EXPECT_EQ(level_of(machine, "cpu-throttled"), "none");
  machine.cgroup.throttled_periods = 51;
  EXPECT_EQ(level_of(machine, "cpu-throttled"), "warning");
}

TEST(CheckTest, Governor) {
  Machine machine = good();
  machine.governor = "powersave";
  machine.scaling_driver = "intel_pstate";
  EXPECT_EQ(level_of(machine, "cpu-governor"), "none") << "there it means: by demand";
  machine.scaling_driver = "acpi-cpufreq";
  EXPECT_EQ(level_of(machine, "cpu-governor"), "warning");
}

TEST(CheckTest, Environment) {
  Machine machine = good();
  machine.environment = {{"OMP_NUM_THREADS", "16"}};
  EXPECT_EQ(level_of(machine, "threads-too-many"), "none");
  machine.environment = {{"OMP_NUM_THREADS", "17"}};
  EXPECT_EQ(level_of(machine, "threads-too-many"), "warning");
  machine.environment = {{"OMP_NUM_THREADS", "1"}};
  EXPECT_EQ(level_of(machine, "threads-one"), "info") << "the GPU computes";
  machine.gpus.clear();
  EXPECT_EQ(level_of(machine, "threads-one"), "warning");
  machine = good();
  machine.environment = {{"CUDA_LAUNCH_BLOCKING", "0"}, {"CUDA_VISIBLE_DEVICES", "0"}};
  EXPECT_THAT(find_problems(machine), IsEmpty());
  machine.environment = {{"CUDA_LAUNCH_BLOCKING", "1"}, {"CUDA_VISIBLE_DEVICES", ""}};
  EXPECT_EQ(level_of(machine, "launch-blocking"), "warning");
  EXPECT_EQ(level_of(machine, "gpu-hidden"), "warning");
}

TEST(CheckTest, MemoryAndStorage) {
  Machine machine = good();
  machine.memory.shm_bytes = 64U << 20;
  EXPECT_EQ(level_of(machine, "shm-small"), "warning");
  machine.memory.shm_bytes = 2 * kGiB;
  machine.memory.shm_free_bytes = 1;
  EXPECT_EQ(level_of(machine, "shm-full"), "warning");
  machine.memory.available_bytes = kGiB;
  EXPECT_EQ(level_of(machine, "memory-low"), "warning");
  machine.host.memory_limit = 8 * kGiB;
  EXPECT_EQ(level_of(machine, "memory-limit"), "info");
  machine.storage.push_back({"/data", "ext4", "sda", "hdd", 1000 * kGiB, 900 * kGiB});
  EXPECT_EQ(level_of(machine, "disk-spinning"), "warning");
  EXPECT_EQ(level_of(machine, "disk-low"), "none");
  machine.storage[0].free_bytes = 30 * kGiB;
  EXPECT_EQ(level_of(machine, "disk-low"), "warning");
  machine.storage[0].kind = "network";
  EXPECT_EQ(level_of(machine, "disk-network"), "info");
}

TEST(CheckTest, Drivers) {
  Machine machine = good();
  machine.gpus.clear();
  EXPECT_EQ(level_of(machine, "gpu-none-visible"), "warning");
  machine.nvml_failure = telemetry::NvmlFailure::kNotInstalled;
  EXPECT_EQ(level_of(machine, "gpu-none"), "info");
  EXPECT_EQ(exit_code(find_problems(machine)), 0) << "a machine without a GPU is no fault";
  machine.nvidia_pci = {"0000:1b:00.0"};
  EXPECT_EQ(level_of(machine, "gpu-driver-missing"), "critical");
  machine.nvml_failure = telemetry::NvmlFailure::kUnusable;
  EXPECT_EQ(level_of(machine, "gpu-driver-broken"), "critical");
  machine.nvml_failure = telemetry::NvmlFailure::kNoAnswer;
  EXPECT_EQ(level_of(machine, "gpu-driver-hangs"), "critical");
  EXPECT_EQ(exit_code(find_problems(machine)), 1);
}

std::string fix_of(const Machine& machine, const std::string& id) {
  for (const Problem& problem : find_problems(machine)) {
    if (problem.id == id) {
      return problem.message + " | " + problem.fix;
    }
  }
  return "none";
}

TEST(CheckTest, ADriverWithoutDeviceFilesIsToldFromOneThatIsNotLoaded) {
  Machine machine = good();
  machine.gpus.clear();
  machine.nvml_failure = telemetry::NvmlFailure::kUnusable;
  machine.nvml_problem = "nvmlInit: Driver Not Loaded (9)";
  EXPECT_THAT(fix_of(machine, "gpu-driver-broken"), HasSubstr("modprobe nvidia"));
  machine.nvidia_module = true;
  EXPECT_THAT(fix_of(machine, "gpu-driver-broken"), HasSubstr("there is no /dev/nvidiactl"));
  EXPECT_THAT(fix_of(machine, "gpu-driver-broken"), HasSubstr("--gres=gpu:1"));
  machine.nvidia_files = true;
  machine.nvml_problem = "nvmlInit: Insufficient Permissions (4)";
  EXPECT_THAT(fix_of(machine, "gpu-driver-broken"), HasSubstr("ls -l /dev/nvidia*"));
  machine.nvml_problem = "nvmlInit: Unknown Error (999)";
  EXPECT_THAT(fix_of(machine, "gpu-driver-broken"), HasSubstr("start it anew"));
  machine.nvml_failure = telemetry::NvmlFailure::kNone;
  machine.nvidia_files = false;
  EXPECT_THAT(fix_of(machine, "gpu-none-visible"), HasSubstr("there is no /dev/nvidiactl"));
}

TEST(CheckTest, WhatSlurmSetsForAJobWithoutAGpuHidesAll) {
  Machine machine = good();
  machine.environment["CUDA_VISIBLE_DEVICES"] = "NoDevFiles";
  EXPECT_THAT(fix_of(machine, "gpu-hidden"), HasSubstr("--gres=gpu:1"));
  machine.environment["CUDA_VISIBLE_DEVICES"] = "-1";
  EXPECT_THAT(fix_of(machine, "gpu-hidden"), HasSubstr("unset CUDA_VISIBLE_DEVICES"));
}

TEST(CheckTest, GpuHealth) {
  Machine machine = good();
  GpuState& gpu = machine.gpus[0];
  gpu.reading.ecc_uncorrected = 1;
  EXPECT_EQ(level_of(machine, "gpu-ecc-errors"), "critical");
  gpu.rows_pending = true;
  EXPECT_EQ(level_of(machine, "gpu-reset-needed"), "warning");
  gpu.rows_failed = true;
  EXPECT_EQ(level_of(machine, "gpu-memory-worn"), "critical");
  gpu.persistence = false;
  EXPECT_EQ(level_of(machine, "gpu-persistence"), "info");
  gpu.compute_mode = 2;
  EXPECT_EQ(level_of(machine, "gpu-prohibited"), "critical");
  gpu.answers = false;
  EXPECT_EQ(level_of(machine, "gpu-lost"), "critical");
  EXPECT_EQ(level_of(machine, "gpu-ecc-errors"), "none") << "nothing is known of one that does not answer";
}

TEST(CheckTest, GpuClocksAndLink) {
  Machine machine = good();
  GpuState& gpu = machine.gpus[0];
  gpu.reading.throttle_reasons = telemetry::nvml::kReasonIdle;
  EXPECT_THAT(find_problems(machine), IsEmpty());
  gpu.reading.throttle_reasons = telemetry::nvml::kReasonPowerCap;
  EXPECT_EQ(level_of(machine, "gpu-at-power-limit"), "info");
  gpu.reading.throttle_reasons = telemetry::nvml::kReasonHardwareThermal;
  EXPECT_EQ(level_of(machine, "gpu-throttled"), "warning");
  gpu.facts.power_limit_w = 500;
  EXPECT_EQ(level_of(machine, "gpu-power-limit"), "warning");
  gpu.reading.temperature_c = 86;
  EXPECT_EQ(level_of(machine, "gpu-hot"), "warning");
  gpu.facts.pcie = {3, 16, 5, 16};
  gpu.reading.utilisation = 0;
  EXPECT_EQ(level_of(machine, "gpu-link-generation"), "info") << "an idle link rests";
  gpu.reading.utilisation = 0.9;
  EXPECT_EQ(level_of(machine, "gpu-link-generation"), "warning");
  EXPECT_EQ(level_of(machine, "gpu-link-width"), "none");
  gpu.facts.pcie.width = 8;
  EXPECT_EQ(level_of(machine, "gpu-link-width"), "warning");
}

TEST(CheckTest, GpuSharedFarAndSliced) {
  Machine machine = good();
  GpuState& gpu = machine.gpus[0];
  gpu.processes = {{7, kGiB, 0.0, std::nullopt}};
  EXPECT_EQ(level_of(machine, "gpu-in-use"), "info");
  gpu.processes = {{7, kGiB, 0.5, std::nullopt}};
  EXPECT_EQ(level_of(machine, "gpu-in-use"), "warning");
  gpu.processes = {{7, 20 * kGiB, std::nullopt, std::nullopt}};
  EXPECT_EQ(level_of(machine, "gpu-in-use"), "warning");
  machine.numa = {{0, telemetry::parse_cpu_list("0-15")}, {1, telemetry::parse_cpu_list("16-31")}};
  gpu.facts.local_cpus = "16-31";
  EXPECT_EQ(level_of(machine, "gpu-far"), "warning");
  EXPECT_EQ(level_of(machine, "cpu-numa"), "none") << "one node is all that it may use";
  machine.affinity = "8-20";
  EXPECT_EQ(level_of(machine, "gpu-far"), "none");
  EXPECT_EQ(level_of(machine, "cpu-numa"), "info");
  gpu.mig_on = true;
  EXPECT_EQ(level_of(machine, "gpu-mig"), "warning");
  EXPECT_EQ(level_of(machine, "gpu-in-use"), "info") << "in another slice";
  gpu.facts.mig.resize(2);
  EXPECT_EQ(level_of(machine, "gpu-mig"), "info");
}

TEST(CheckTest, WorstFirst) {
  Machine machine = good();
  machine.gpus[0].persistence = false;
  machine.memory.shm_bytes = 1;
  machine.gpus[0].compute_mode = 2;
  const auto problems = find_problems(machine);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].level, Level::kCritical);
  EXPECT_EQ(problems[2].level, Level::kInfo);
}

class InspectTest : public unidle::testing::MachineFiles {
 protected:
  ~InspectTest() override {
    ::unsetenv("UNIDLE_NVML_LIBRARY");
    ::unsetenv("UNIDLE_FAKE_NVML_SCRIPT");
  }
};

TEST_F(InspectTest, AMachineOutOfFiles) {
  ::setenv("UNIDLE_NVML_LIBRARY", UNIDLE_FAKE_NVML, 1);
  put("script",
      "count 1\nname H200\ncapability 9.0\nmemory 150000000000:0\npci 0:0x1b:0\ndriver 570.86\ncuda 12080\n"
      "power_default 700000\npower_limit 700000\npcie 5:16:5:16\npersistence 1\nprocesses none\n");
  ::setenv("UNIDLE_FAKE_NVML_SCRIPT", (root() / "script").c_str(), 1);
  put("proc/cpuinfo", "model name\t: Some CPU\nflags\t: amx_bf16 avx512_bf16\n");
  put("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n");
  put("proc/self/status", "Cpus_allowed_list:\t0-3\n");
  put("proc/self/cgroup", "0::/job\n");
  put("proc/loadavg", "1.50 1 1 1/1 1\n");
  put("proc/pressure/cpu", "some avg10=25.00 avg60=0.00 avg300=0.00 total=5000000\nfull avg10=0 total=0\n");
  put("sys/fs/cgroup/job/cpu.stat", "usage_usec 1\nnr_periods 100\nnr_throttled 40\nthrottled_usec 9000000\n");
  put("sys/devices/system/cpu/online", "0-3\n");
  for (int cpu = 0; cpu < 4; ++cpu) {
    put("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
        cpu % 2 == 0 ? "0,2\n" : "1,3\n");
  }
  put("sys/devices/system/node/node0/cpulist", "0-1\n");
  put("sys/devices/system/node/node1/cpulist", "2-3\n");
  put("sys/bus/pci/devices/0000:1b:00.0/vendor", "0x10de\n");
  put("sys/bus/pci/devices/0000:1b:00.0/class", "0x030200\n");
  put("sys/bus/pci/devices/0000:1b:00.0/local_cpulist", "2-3\n");
  put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86\n");
  put("dev/nvidiactl", "");
  const Machine machine = inspect(root(), root());
  EXPECT_TRUE(machine.nvidia_module && machine.nvidia_files);
  EXPECT_EQ(machine.cores, 2);
  EXPECT_EQ(machine.numa.size(), 2U);
  EXPECT_EQ(machine.load_1min, 1.5);
  EXPECT_TRUE(machine.host.cpu_amx());
  EXPECT_EQ(machine.memory.swap_used_bytes, 40U * 1024);
  EXPECT_EQ(machine.cpu_pressure->some_10s, 0.25);
  EXPECT_EQ(machine.cgroup.throttled_periods, 40U);
  EXPECT_EQ(machine.driver_version, "570.86");
  ASSERT_EQ(machine.gpus.size(), 1U);
  EXPECT_EQ(machine.gpus[0].facts.local_cpus, "2-3");
  EXPECT_EQ(machine.nvidia_pci.size(), 1U);
  EXPECT_EQ(level_of(machine, "cpu-throttled"), "warning");
  const auto problems = find_problems(machine);
  const nlohmann::json json = to_json(machine, problems, nullptr);
  EXPECT_EQ(json["schema"], "unidle.check/1");
  EXPECT_EQ(json["gpus"][0]["name"], "H200");
  EXPECT_TRUE(json["gpus"][0]["power_w"].is_null());
  EXPECT_EQ(json["gpus"][0]["processes"], nlohmann::json::array());
  EXPECT_TRUE(json["gpus"][0]["throttle_reasons"].is_null()) << "not asked is not none";
  const std::string text = to_text(machine, problems, nullptr, 100);
  EXPECT_THAT(text, HasSubstr("H200 (compute 9.0)"));
  EXPECT_THAT(text, HasSubstr("[cpu-throttled]"));
  EXPECT_THAT(text, HasSubstr("2 NUMA nodes"));
  EXPECT_EQ(json["host"]["cpu"]["numa_nodes"], 2);
}

TEST_F(InspectTest, BrokenDriverIsNotNoGpu) {
  put("lib.so", "no library");
  ::setenv("UNIDLE_NVML_LIBRARY", (root() / "lib.so").c_str(), 1);
  const Machine machine = inspect(root(), root());
  EXPECT_TRUE(to_json(machine, {}, nullptr)["gpus"].is_null());
  ::setenv("UNIDLE_NVML_LIBRARY", (root() / "none.so").c_str(), 1);
  EXPECT_EQ(to_json(inspect(root(), root()), {}, nullptr)["gpus"], nlohmann::json::array());
}

TEST_F(InspectTest, Storage) {
  put("proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:44 / " + (root() / "net").string() +
                                 " rw,relatime shared:1 - nfs4 server:/x rw\n3 1 259:2 / " +
                                 (root() / "fast").string() + " rw - xfs /dev/nvme0n1p2 rw\n");
  put("sys/devices/a/sda/queue/rotational", "1\n");
  put("sys/devices/a/sda/sda1/partition", "1\n");
  put("sys/devices/a/nvme0n1/nvme0n1p2/partition", "2\n");
  make_folders(root() / "sys/dev/block");
  make_folders(root() / "net/x");
  make_folders(root() / "fast");
  fs::create_directory_symlink(root() / "sys/devices/a/sda/sda1", root() / "sys/dev/block/8:1");
  fs::create_directory_symlink(root() / "sys/devices/a/nvme0n1/nvme0n1p2", root() / "sys/dev/block/259:2");
  EXPECT_EQ(telemetry::read_storage(root(), root()).kind, "hdd");
  EXPECT_EQ(telemetry::read_storage(root(), root()).device, "sda");
  EXPECT_EQ(telemetry::read_storage(root() / "net/x", root()).kind, "network");
  EXPECT_EQ(telemetry::read_storage(root() / "fast", root()).kind, "nvme");
  EXPECT_GT(telemetry::read_storage(root() / "fast", root()).total_bytes.value_or(0), 0U);
}

TEST_F(InspectTest, ThisMachine) {
  const Machine machine = inspect();
  EXPECT_GT(machine.host.memory_bytes, 0U);
  ASSERT_FALSE(machine.storage.empty());
  EXPECT_TRUE(machine.storage[0].total_bytes.has_value());
  EXPECT_THAT(to_text(machine, find_problems(machine), nullptr, 80), HasSubstr("cpu"));
}

TEST_F(InspectTest, SpeedOfDiskAndDecoder) {
  SpeedOptions options;
  options.folder = root();
  options.file_bytes = 4U << 20;
  options.decode_s = 0.01;
  const nlohmann::json disk = measure_disk(options);
  EXPECT_GT(disk["read_bytes_s"].get<double>(), 0);
  EXPECT_GT(disk["small_reads_s"].get<double>(), 0);
  EXPECT_TRUE(fs::is_empty(root())) << "the test file is gone";
  EXPECT_GT(measure_decode(options)["jpeg_images_s"].get<double>(), 0);
  options.folder = root() / "nowhere";
  try {
    measure_disk(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
  }
}

}  // namespace
}  // namespace unidle::check
