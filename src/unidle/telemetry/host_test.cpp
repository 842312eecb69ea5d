#include "unidle/telemetry/host.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "unidle/base/testing/machine_files.h"

namespace unidle::telemetry {
namespace {

class Host : public unidle::testing::MachineFiles {};

TEST_F(Host, CpuLists) {
  EXPECT_EQ(count_cpu_list("0-3,8,10-11\n"), 7);
  EXPECT_EQ(count_cpu_list("5"), 1);
  EXPECT_EQ(count_cpu_list(""), std::nullopt);
  EXPECT_EQ(count_cpu_list("3-1"), std::nullopt);
  EXPECT_EQ(count_cpu_list("x"), std::nullopt);
}

TEST_F(Host, FactsOfAMachine) {
  put("proc/cpuinfo",
      "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx2 avx512_bf16\n\nprocessor\t: 1\n");
  put("proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\n");
  put("proc/self/status", "Name:\tx\nCpus_allowed:\t7\nCpus_allowed_list:\t0-2\n");
  put("proc/sys/kernel/hostname", "box\n");
  put("sys/devices/system/cpu/online", "0-15\n");
  const HostFacts facts = read_host_facts(root());
  EXPECT_EQ(facts.hostname, "box");
  EXPECT_EQ(facts.cpu_model, "Some CPU @ 2 GHz");
  EXPECT_TRUE(facts.cpu_bf16());
  EXPECT_EQ(facts.cpus_online, 16);
  EXPECT_EQ(facts.cpus_affinity, 3);
  EXPECT_EQ(facts.memory_bytes, 1024U * 1024);
  EXPECT_FALSE(facts.cpu_quota.has_value());
  EXPECT_DOUBLE_EQ(facts.cpus_allowed(), 3);
}

TEST_F(Host, ArmNamesItsCoresByNumbers) {
  const std::string front =
      "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve bf16\nCPU implementer\t: 0x41\n";
  put("proc/cpuinfo",
      front + "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\nCPU revision\t: 0\n\nprocessor\t: 1\n");
  const HostFacts grace = read_host_facts(root());
  EXPECT_EQ(grace.cpu_model, "Neoverse V2");
  EXPECT_EQ(grace.cpus_online, 2);
  EXPECT_TRUE(grace.cpu_bf16());
  put("proc/cpuinfo", front + "CPU part\t: 0xfff\n");
  EXPECT_EQ(read_host_facts(root()).cpu_model, "Arm 0x41 0xfff") << "two machines that differ have different names";
}

class Mask : public Host {
 protected:
  /// A process as /proc shows it.
  void process(const std::string& pid, const std::string& name, int parent, const std::string& cpus,
               const std::string& cgroup) {
    put("proc/" + pid + "/status",
        "Name:\t" + name + "\nPPid:\t" + std::to_string(parent) + "\nCpus_allowed_list:\t" + cpus + "\n");
    put("proc/" + pid + "/cgroup", "0::" + cgroup + "\n");
  }
  std::optional<int> before() { return read_host_facts(root()).cpus_before_mask; }

  void SetUp() override {
    put("sys/devices/system/cpu/online", "0-15\n");
    process("self", "unidle", 30, "3", "/job");
    process("30", "bash", 20, "3", "/job");
    process("20", "bash", 10, "0-7", "/job");
    process("10", "sshd", 1, "0-15", "/system");
  }
};

TEST_F(Mask, OfTheLaunchCommandIsNarrowerThanWhatStartedIt) { EXPECT_EQ(before(), 8); }

TEST_F(Mask, OfACgroupHoldsForAllOfIt) {
  process("20", "bash", 10, "3", "/job");
  EXPECT_EQ(before(), std::nullopt) << "what is outside of the cgroup shows nothing";
}

TEST_F(Mask, OfASchedulerIsTheJobsLimit) {
  for (const char* daemon : {"slurmstepd", "condor_starter"}) {
    process("20", daemon, 10, "0-7", "/job");
    EXPECT_EQ(before(), std::nullopt) << daemon;
  }
}

TEST_F(Mask, ThatDividesTheCpusAmongRanksLimitsNone) {
  for (const char* launcher : {"OMPI_COMM_WORLD_LOCAL_SIZE", "LOCAL_WORLD_SIZE"}) {
    ::setenv(launcher, "4", 1);
    EXPECT_EQ(before(), std::nullopt) << launcher;
    ::unsetenv(launcher);
  }
  ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1", 1);
  EXPECT_EQ(before(), 8) << "one rank is bound to a core as well";
  ::unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
}

TEST_F(Mask, OfAProcessWithoutParentsIsUnknown) {
  process("self", "unidle", 0, "3", "/job");
  EXPECT_EQ(before(), std::nullopt);
}

TEST_F(Host, UsableCpusAreWholeOnesOfAffinityAndQuota) {
  put("proc/self/status", "Cpus_allowed_list:\t0-5\n");
  put("sys/devices/system/cpu/online", "0-15\n");
  EXPECT_EQ(usable_cpus(root()), 6);
  put("proc/self/cgroup", "0::/a\n");
  put("sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(usable_cpus(root()), 2);
  put("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_cpus(root()), 1);
}

TEST_F(Host, EmptyMachineIsNoError) {
  const HostFacts facts = read_host_facts(root());
  EXPECT_EQ(usable_cpus(root()), 1);
  EXPECT_EQ(facts.cpus_online, 1);
  EXPECT_FALSE(facts.cpu_bf16());
  EXPECT_GE(facts.cpus_allowed(), 1);
}

TEST_F(Host, LiveMachine) {
  const HostFacts facts = read_host_facts("/");
  EXPECT_GE(facts.cpus_allowed(), 0.01);
  EXPECT_LE(facts.cpus_affinity, facts.cpus_online);
  EXPECT_GT(facts.memory_bytes, 0U);
}

TEST_F(Host, CgroupV2TakesTheLeastUpTheTree) {
  put("proc/self/cgroup", "0::/a/b/c\n");
  put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
  put("sys/fs/cgroup/a/memory.max", "max\n");
  put("sys/fs/cgroup/a/b/memory.max", "5000\n");
  put("sys/fs/cgroup/a/b/c/memory.max", "9000\n");
  const CgroupLimits limits = read_cgroup_limits(root());
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, 5000U);
}

TEST_F(Host, CgroupV2InAContainerIsItsMount) {
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(read_cgroup_limits(root()).cpus, 0.5);
}

TEST_F(Host, CgroupV1TakesTheLeastUpTheTree) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/slurm/job_1/step_0\n3:memory:/slurm/job_1\n1:name=systemd:/x\n");
  put("sys/fs/cgroup/cpu,cpuacct/slurm/job_1/step_0/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/slurm/job_1/step_0/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/cpu,cpuacct/slurm/job_1/cpu.cfs_quota_us", "800000\n");
  put("sys/fs/cgroup/cpu,cpuacct/slurm/job_1/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "123456\n");
  const CgroupLimits limits = read_cgroup_limits(root());
  EXPECT_EQ(limits.cpus, 8.0);
  EXPECT_EQ(limits.memory_bytes, 123456U);
}

TEST_F(Host, CgroupV1ControllerUnderItsOwnName) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read_cgroup_limits(root()).cpus, 2.5);
}

TEST_F(Host, MalformedCgroupFilesAreNoLimit) {
  put("proc/self/cgroup", "garbage\n0::/a\n:::\n");
  put("sys/fs/cgroup/a/cpu.max", "100000 0\n");
  put("sys/fs/cgroup/a/memory.max", "lots\n");
  const CgroupLimits limits = read_cgroup_limits(root());
  EXPECT_FALSE(limits.cpus.has_value());
  EXPECT_FALSE(limits.memory_bytes.has_value());
}

}  // namespace
}  // namespace unidle::telemetry
